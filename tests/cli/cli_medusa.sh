#!/usr/bin/env bash
# drey train medusa and drey run -d medusa: what is said and written as JSON, the same text with
# heads and without, -d auto's word about heads of another model, and that a signal leaves what the
# next call continues.
#   cli_medusa.sh DREY MAKE_TOY
. "$(dirname "$0")/shell.sh"
"$make_toy" "$tmp/m.gguf" 3
"$make_toy" "$tmp/other.gguf" 2
side=$tmp/m.gguf.drey-medusa

# train CODE OPTION...; $n: tokens of text
train() {
    ends "$1" "$drey" train medusa -m "$tmp/m.gguf" -t 2 -n "${n:-2000}" --epochs 2 "${@:2}"
}

write -d none
mv "$tmp/text" "$tmp/plain"
train 0 --json "$tmp/json"
trained "$side" heads head 4
has "$tmp/inspect" "drey-medusa"
for d in medusa "$side" auto; do
    write -d "$d"
    same "another text with -d $d" "$tmp/text" "$tmp/plain"
done
write -d medusa --policy sequence --stats "$tmp/stats"
same "another text with a sequence" "$tmp/text" "$tmp/plain"

write -d "$side" --policy specinfer
same "another text with trees" "$tmp/text" "$tmp/plain"
echo '{"id": "fox", "group": "code", "turns": ["The quick brown"]}' >"$tmp/prompts"

# Of a model made twice as wide the same heads, widened, guess the same.
if python3 -c 'import numpy' 2>/dev/null; then
    python3 -B scripts/widen_gguf.py "$tmp/m.gguf" "$tmp/wide.gguf" >/dev/null
    python3 -B scripts/widen_heads.py "$side" "$tmp/wide.gguf" "$tmp/wide.gguf.drey-medusa" >/dev/null
    for m in m wide; do
        "$drey" run -m "$tmp/$m.gguf" -d medusa --policy specinfer -p "The quick brown" -n 60 -q \
            --ignore-eos --stats "$tmp/$m.json" >"$tmp/$m.txt" || wrong "run of $m"
        key "$tmp/$m.json" drafted accepted >"$tmp/$m.guesses"
    done
    same "the wide model writes another text" "$tmp/m.txt" "$tmp/wide.txt"
    same "widened heads guess otherwise" "$tmp/m.guesses" "$tmp/wide.guesses"
else
    echo "cli_medusa: no numpy, widened heads are not tried"
fi

# Heads of another model: an error where they were named, a word where they were found.
cp "$side" "$tmp/other.gguf.drey-medusa"
refused 1 "another model" "$drey" run -m "$tmp/other.gguf" -d medusa -p a -n 4
ends 0 "$drey" run -m "$tmp/other.gguf" -p a -n 4
has "$tmp/err" "warning: .*another model"

# Interrupted while it writes texts, then continued.
rm "$side"
# 64 bytes are more than the head
# shellcheck disable=SC2016 # evaluated there
ends_by TERM '[ "$(stat -c %s "$side.texts" 2>/dev/null || echo 0)" -gt 64 ]' \
    "$drey" train medusa -m "$tmp/m.gguf" -t 1 -n 100000000 -q
[ ! -e "$side" ] || wrong "an interrupted training wrote heads"
[ -s "$side.texts" ] || wrong "an interrupted training kept no texts"
train 0 -q --keep-texts
[ -s "$side" ] || wrong "it did not continue"
[ -s "$side.texts" ] || wrong "the texts were not kept"
n=500 train 0 --keep-texts
has "$tmp/out" "^texts .* held out; the first 500 of [0-9]+ that were kept"
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
has "$tmp/out" "^head 4"
train 1 -o "$tmp/answers"
has "$tmp/err" "answer other prompts; give the same prompts"
train 1 --prompts "$tmp/three" # next to texts that the model asked itself for
has "$tmp/err" "answer no prompts; give the same prompts"
train 2 --prompts "$tmp/prompts" -o "$tmp/one"
has "$tmp/err" "two prompts at least"

# What cannot end well is said before anything is written.
n=100000000 train 1 --memory 64M -o "$tmp/large"
one_line "a large training" "takes up to [0-9.]+[MG], and the budget is 64.0M; take at most [0-9]+ tokens"
mkdir "$tmp/folder"
train 1 -o "$tmp/folder"
has "$tmp/err" "$tmp/folder is a folder"
for file in "$tmp/large.texts" "$tmp/folder.texts"; do
    [ ! -e "$file" ] || wrong "$file was begun"
done
if [ "$(id -u)" != 0 ]; then # whom rights do not stop
    chmod 555 "$tmp/folder"
    train 1 -o "$tmp/folder/heads"
    has "$tmp/err" "cannot write $tmp/folder/heads"
fi
for file in "$tmp/folder" "$tmp/nowhere/file"; do
    code=0
    "$drey" train exit -m "$tmp/m.gguf" -n 16 -o "$file" >"$tmp/out" 2>"$tmp/err" || code=$?
    [ $code != 0 ] || wrong "train exit wrote $file"
    if grep -q "train: " "$tmp/err"; then wrong "train exit looked at $file too late"; fi
done
exit $failed
