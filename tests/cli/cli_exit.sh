#!/usr/bin/env bash
# drey run --exit on toys: every way of leaving a pass, the same text from those that are not lossy,
# and statistics that add up; drey perplexity --exit.
#   cli_exit.sh DREY MAKE_TOY
. "$(dirname "$0")/shell.sh"
"$make_toy" "$tmp/t.gguf" 8
"$make_toy" "$tmp/d.gguf" 4
train=("$drey" train exit -m "$tmp/t.gguf" -d "$tmp/d.gguf" -t 1 -n 24 -q)
cat >"$tmp/prompts" <<'PROMPTS'
{"id": "a", "group": "code", "turns": ["Reverse a list.", "And back."]}
{"id": "b", "group": "code", "prompt": "int main(void)"}
{"question_id": 81, "category": "writing", "turns": ["Write a letter.", "Another."]}
PROMPTS
"${train[@]}" --prompts "$tmp/prompts" || wrong "training: exit code $?"

# 1. Every way of leaving: what is not lossy writes the text of "off", and statistics say who left.
write_on() { # NAME OPTION...
    local name=$1
    shift
    ends 0 "$drey" run -m "$tmp/t.gguf" -t 1 -p "Reverse" -n 40 -q --ignore-eos --raw-ids --stats "$tmp/$name.json" "$@"
    mv "$tmp/out" "$tmp/$name"
}
single=(-d "$tmp/d.gguf" --policy single)
one=("${single[@]}" --exit-threshold 0.3)
write_on off -d none
write_on watched "${single[@]}" --exit fast --exit-threshold 1
write_on exact "${one[@]}" --exit exact
write_on fast "${one[@]}" --exit fast
write_on every "${one[@]}" --exit fast --without schedule
write_on random "${one[@]}" --exit fast --without predictors
write_on tree-exact -d "$tmp/d.gguf" --exit exact
write_on tree-fast -d "$tmp/d.gguf" --exit fast
for name in watched exact tree-exact; do
    same "$name wrote another text than off" "$tmp/off" "$tmp/$name"
done
python3 - "$tmp" <<'PYTHON' || failed=1
import json, sys
of = {name: json.load(open(f"{sys.argv[1]}/{name}.json"))["exits"] for name in
      ("watched", "exact", "fast", "every", "random", "tree-exact", "tree-fast")}
for name, exits in of.items():
    at = exits["at_layer"]
    assert exits["n_layers"] == 8 and sum(at) == exits["tokens"], (name, exits)
    assert exits["left"] == sum(at[:7]) and exits["mode"] == ("exact" if "exact" in name else "fast"), (name, exits)
    layers = sum(i * n for i, n in enumerate(at, 1)) / sum(at)
    assert abs(exits["layers_per_token"] - layers) < 1e-9, (name, exits)
assert of["watched"]["left"] == 0 and of["watched"]["looks"] > 0
assert of["fast"]["left"] > 0 and of["every"]["looks"] >= of["fast"]["looks"] > 0
assert "exits" not in json.load(open(f"{sys.argv[1]}/off.json"))
PYTHON
tests/cli/man_keys.py Statistics "$tmp/fast.json" 2>"$tmp/err" || wrong "$(cat "$tmp/err")"

# 2. A text's perplexity by where its tokens left, which is the whole model's where none does.
score() { # NAME OPTION...: the figures of both lines
    ends 0 "$drey" perplexity -m "$tmp/t.gguf" -t 1 --window 64 -q "${@:2}" <CONTRIBUTING.md
    has "$tmp/out" "^perplexity [0-9]+\.[0-9]{4} over [0-9]+ tokens$" \
        "^early exits [0-9.]+: [0-9.]+ % of the tokens left, [0-9.]+ of 8 layers per token, the likeliest token is the same for [0-9.]+ %$"
    grep -oE '[0-9]+\.[0-9]+' "$tmp/out" | paste -sd ' ' >"$tmp/$1"
}
score never -d "$tmp/d.gguf" --exit fast --exit-threshold 1
score some -d "$tmp/d.gguf" --exit fast --exit-threshold 0.3
ends 0 "$drey" perplexity -m "$tmp/t.gguf" -t 1 --window 64 -q <CONTRIBUTING.md
read -r _ alone _ <"$tmp/out"
read -r whole early left layers top <"$tmp/never"
[ "$whole $early $left $layers $top" = "$alone $alone 0.00 8.00 100.00" ] || wrong "not the whole model's: $(cat "$tmp/never")"
read -r whole early left layers top <"$tmp/some"
[ "$whole" = "$alone" ] || wrong "another text of the whole model: $(cat "$tmp/some")"
case "$early $left $layers $top" in
"$whole "* | *" 0.00 "* | *" 8.00 "* | *" 100.00") wrong "nothing left early: $(cat "$tmp/some")" ;;
esac

# 3. Of a model made twice as wide the same predictors, widened, let the same tokens leave.
if python3 -c 'import numpy' 2>/dev/null; then
    python3 -B scripts/widen_gguf.py "$tmp/t.gguf" "$tmp/wide.gguf" >/dev/null
    python3 -B scripts/widen_exits.py "$tmp/t.gguf.drey-exit" "$tmp/wide.gguf" "$tmp/wide.gguf.drey-exit"
    for m in t wide; do
        "$drey" run -m "$tmp/$m.gguf" -d "$tmp/d.gguf" --policy single --exit fast --exit-threshold 0.3 -p "Reverse" -n 40 \
            -q --ignore-eos --stats "$tmp/$m.json" >"$tmp/$m.txt" || wrong "run of $m"
        key "$tmp/$m.json" 'exits["left"]' >"$tmp/$m.left"
    done
    same "the wide model writes another text" "$tmp/t.txt" "$tmp/wide.txt"
    same "others left" "$tmp/t.left" "$tmp/wide.left"
else
    echo "cli_exit: no numpy, widened predictors are not tried"
fi

# 4. A file that is none is reported in a sentence.
refused 1 '' "$drey" run -m "$tmp/t.gguf" "${one[@]}" --exit fast --exit-file "$tmp/d.gguf" -p a -n 2 -q
exit $failed
