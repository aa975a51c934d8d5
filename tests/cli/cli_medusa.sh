#!/usr/bin/env bash
# drey train medusa and drey run -d medusa: what is said and written as JSON, the same text with
# heads and without, -d auto's word about heads of another model, and that a signal leaves what the
# next call goes on with.
#   cli_medusa.sh DREY MAKE_TOY
set -euo pipefail
usage="usage: cli_medusa.sh DREY MAKE_TOY"
drey=${1:?$usage} make_toy=${2:?$usage}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
wrong() {
    echo "cli_medusa: $*"
    failed=1
}
"$make_toy" "$tmp/m.gguf" 3
"$make_toy" "$tmp/other.gguf" 2
side=$tmp/m.gguf.drey-medusa

# train CODE OPTION...; $n: tokens of text
train() {
    local want=$1 code=0
    shift
    timeout 300 "$drey" train medusa -m "$tmp/m.gguf" -t 2 -n "${n:-2000}" --epochs 2 "$@" >"$tmp/out" \
        2>"$tmp/err" || code=$?
    [ $code = "$want" ] || wrong "train $*: exit code $code: $(head -n 3 "$tmp/err")"
}
says() { # FILE PATTERN
    grep -qE "$2" "$1" || wrong "\"$2\" is not said: $(head -n 5 "$1")"
}
write() { # OPTION...: a text to $tmp/text
    timeout 300 "$drey" run -m "$tmp/m.gguf" -t 2 -n 40 --ignore-eos -p "The quick brown" -q "$@" \
        >"$tmp/text" 2>"$tmp/err" || wrong "run $*: $(head -n 3 "$tmp/err")"
}

write -d none
mv "$tmp/text" "$tmp/plain"
train 0 --json "$tmp/json"
says "$tmp/out" "^texts +[0-9]+ tokens to learn from, [0-9]+ held out"
says "$tmp/out" "^head 4( +[0-9.]+){9}$"
says "$tmp/out" "^written +$side, guessing among [0-9]+ tokens"
says "$tmp/err" "^train: "
python3 - "$tmp/json" <<'END' || wrong "the JSON is not as it should be"
import json, sys
root = json.load(open(sys.argv[1]))
assert len(root["heads"]) == 4 and root["train_positions"] > 1000 and root["vocabulary"] > 0
assert all(len(h["accuracy_by_rank"]) == 8 and sum(h["accuracy_by_rank"]) <= 1 for h in root["heads"])
END
for file in "$side.texts" "$side.checkpoint"; do
    [ ! -e "$file" ] || wrong "$file is still there"
done
"$drey" inspect "$side" >"$tmp/inspect" || wrong "inspect"
says "$tmp/inspect" "drey-medusa"
for d in medusa "$side" auto; do
    write -d "$d"
    cmp -s "$tmp/text" "$tmp/plain" || wrong "another text with -d $d"
done
code=0
"$drey" train exit -m "$tmp/m.gguf" -d "$side" -q 2>"$tmp/err" || code=$?
[ $code = 2 ] || wrong "predictors of exits with heads: exit code $code"
says "$tmp/err" "cannot be trained with heads"
write -d medusa --policy sequence --stats "$tmp/stats"
cmp -s "$tmp/text" "$tmp/plain" || wrong "another text with a sequence"

write -d "$side" --policy specinfer
cmp -s "$tmp/text" "$tmp/plain" || wrong "another text with trees"
echo '{"id": "fox", "group": "code", "turns": ["The quick brown"]}' >"$tmp/prompts"

# Of a model made twice as wide the same heads, widened, guess the same.
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../scripts" && pwd)
if python3 -c 'import numpy' 2>/dev/null; then
    python3 -B "$scripts/widen_gguf.py" "$tmp/m.gguf" "$tmp/wide.gguf" >/dev/null
    python3 -B "$scripts/widen_heads.py" "$side" "$tmp/wide.gguf" "$tmp/wide.gguf.drey-medusa" >/dev/null
    for m in m wide; do
        "$drey" run -m "$tmp/$m.gguf" -d medusa --policy specinfer -p "The quick brown" -n 60 -q \
            --ignore-eos --stats "$tmp/$m.json" >"$tmp/$m.txt" || wrong "run of $m"
        python3 -c 'import json, sys; s = json.load(open(sys.argv[1])); print(s["drafted"], s["accepted"])' \
            "$tmp/$m.json" >"$tmp/$m.guesses"
    done
    cmp -s "$tmp/m.txt" "$tmp/wide.txt" || wrong "the wide model writes another text"
    cmp -s "$tmp/m.guesses" "$tmp/wide.guesses" ||
        wrong "widened heads guess otherwise: $(cat "$tmp/m.guesses" "$tmp/wide.guesses")"
else
    echo "cli_medusa: no numpy, widened heads are not tried"
fi

# Heads of another model: an error where they were named, a word where they were found.
cp "$side" "$tmp/other.gguf.drey-medusa"
code=0
"$drey" run -m "$tmp/other.gguf" -d medusa -p a -n 4 >"$tmp/out" 2>"$tmp/err" || code=$?
[ $code = 1 ] || wrong "heads of another model: exit code $code"
says "$tmp/err" "another model"
[ "$(wc -l <"$tmp/err")" = 1 ] || wrong "more than a sentence: $(cat "$tmp/err")"
"$drey" run -m "$tmp/other.gguf" -p a -n 4 >"$tmp/out" 2>"$tmp/err" || wrong "-d auto fails"
says "$tmp/err" "warning: .*another model"

# Interrupted while it writes texts, then gone on with.
rm "$side"
"$drey" train medusa -m "$tmp/m.gguf" -t 1 -n 100000000 -q >"$tmp/out" 2>"$tmp/err" &
child=$!
for _ in $(seq 2400); do # 64 bytes are more than the head
    if [ "$(stat -c %s "$side.texts" 2>/dev/null || echo 0)" -gt 64 ]; then break; fi
    sleep 0.05
done
kill -TERM $child
code=0
wait $child || code=$?
[ $code = 143 ] || wrong "exit code $code after SIGTERM: $(tail -n 3 "$tmp/err")"
[ ! -e "$side" ] || wrong "an interrupted training wrote heads"
[ -s "$side.texts" ] || wrong "an interrupted training kept no texts"
train 0 -q --keep-texts
[ -s "$side" ] || wrong "it did not go on"
[ -s "$side.texts" ] || wrong "the texts were not kept"
n=500 train 0 --keep-texts
says "$tmp/out" "^texts .* held out; the first 500 of [0-9]+ that were kept"
head -c 12 "$side.texts" >"$tmp/cut.texts" # of a writer that ended before its first text
n=500 train 0 -q -o "$tmp/cut"
train 2 --heads 9
train 2 --vocabulary 1000000
train 1 --memory 1M
train 1 -o "$tmp/nowhere/file"

# Answers to prompts, which do not mix with those to others.
for question in "What is a fox?" "Who jumps?" "Over what?"; do
    echo "{\"turns\": [\"$question\"]}"
done >"$tmp/three"
train 0 --prompts "$tmp/three" --keep-texts -o "$tmp/answers"
says "$tmp/out" "^head 4"
train 1 -o "$tmp/answers"
says "$tmp/err" "answer other prompts; give the same prompts"
train 1 --prompts "$tmp/three" # beside texts that the model asked itself for
says "$tmp/err" "answer no prompts; give the same prompts"
train 2 --prompts "$tmp/prompts" -o "$tmp/one"
says "$tmp/err" "two prompts at least"

# What cannot end well is said before anything is written.
n=100000000 train 1 --memory 64M -o "$tmp/large"
says "$tmp/err" "takes up to [0-9]+ MiB, and the budget is 64 MiB; take at most [0-9]+ tokens"
[ "$(wc -l <"$tmp/err")" = 1 ] || wrong "more than a sentence: $(cat "$tmp/err")"
mkdir "$tmp/folder"
train 1 -o "$tmp/folder"
says "$tmp/err" "$tmp/folder is a folder"
for file in "$tmp/large.texts" "$tmp/folder.texts"; do
    [ ! -e "$file" ] || wrong "$file was begun"
done
if [ "$(id -u)" != 0 ]; then # whom rights do not stop
    chmod 555 "$tmp/folder"
    train 1 -o "$tmp/folder/heads"
    says "$tmp/err" "cannot write $tmp/folder/heads"
fi
for file in "$tmp/folder" "$tmp/nowhere/file"; do
    code=0
    "$drey" train exit -m "$tmp/m.gguf" -n 16 -o "$file" >"$tmp/out" 2>"$tmp/err" || code=$?
    [ $code != 0 ] || wrong "train exit wrote $file"
    if grep -q "train: " "$tmp/err"; then wrong "train exit looked at $file too late"; fi
done
exit $failed
