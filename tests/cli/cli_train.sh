#!/usr/bin/env bash
# drey train exit: what it says and writes as JSON, whose candidates it takes, and that wrong
# prompts, a place that cannot be written to and a signal leave no file.
#   cli_train.sh DREY MAKE_TOY
. "$(dirname "$0")/shell.sh"
"$make_toy" "$tmp/m.gguf" 6
"$make_toy" "$tmp/d.gguf" 4
for i in 1 2 3 4; do
    echo '{"prompt": "The quick brown fox number '$i' jumps"}'
done >"$tmp/prompts"
side=$tmp/m.gguf.drey-exit prompts=$tmp/prompts

# train CODE OPTION...
train() {
    ends "$1" "$drey" train exit -m "$tmp/m.gguf" -t 2 -n 24 --hidden 8 --prompts "$prompts" "${@:2}"
}

ends 0 "$drey" train medusa -m "$tmp/m.gguf" -t 2 -n 1000 --epochs 1 -q
ends 0 "$drey" run -m "$tmp/m.gguf" -d none -p x -n 20 -t 1 -q --ignore-eos
mv "$tmp/out" "$tmp/plain"
for source in heads draft text target; do
    case $source in
    heads) who=(-d medusa) ;;
    draft) who=(-d "$tmp/d.gguf") ;;
    text) who=() ;;
    target) who=(-d none) ;;
    esac
    train 0 ${who[@]+"${who[@]}"} --json "$tmp/json"
    has "$tmp/out" "candidates  of the $source.*, right in [0-9.]+ %"
    has "$tmp/out" "^oracle +leaves after [0-9.]+ of 6 layers"
    has "$tmp/out" "^the file's, two levels +0.60 "
    has "$tmp/out" "^written +$side, "
    has "$tmp/err" "^train: "
    holds "train --json" "$tmp/json" "candidates == '$source'" 'layers == 6' 'held_out_positions > 20'
    "$drey" inspect "$side" >"$tmp/inspect" || wrong "inspect"
    has "$tmp/inspect" "drey-exit"
    if [ $source = heads ]; then
        for policy in single optimal; do
            ends 0 "$drey" run -m "$tmp/m.gguf" -d medusa --policy $policy --exit exact -p x -n 20 -t 1 -q --ignore-eos
            same "heads, exits and $policy write another text" "$tmp/out" "$tmp/plain"
        done
        ends 1 "$drey" run -m "$tmp/m.gguf" -d lookup --exit exact -p x -n 4 -t 1
        has "$tmp/err" 'guesses of the drafter "medusa", and the drafter "lookup" guesses here'
        rm "$tmp/m.gguf.drey-medusa"
    fi
    if [ $source = text ]; then # what these predictors do not go with is not promised
        ends 0 "$drey" run -m "$tmp/m.gguf" --exit exact -p x -n 4 -t 1 --memory unlimited -v
        has "$tmp/err" "^draft lookup(: about [0-9.e+]+ tokens/s)?$"
    fi
    rm "$side"
done

train 0 -q --features plain --exit-threshold 0.7 -o "$tmp/other"
[ -z "$(cat "$tmp/out" "$tmp/err")" ] || wrong "-q says $(cat "$tmp/out" "$tmp/err")"
[ -s "$tmp/other" ] || wrong "-o wrote nothing"
[ ! -e "$side" ] || wrong "-o wrote next to the model"
train 0 -q --features plain -o "$tmp/other" # written again
for other in m.gguf prompts d.gguf; do
    cp "$tmp/$other" "$tmp/kept"
    train 2 -o "$tmp/$other"
    has "$tmp/err" "$other(, which is read| is there and holds no predictors); name another file"
    same "$other was written over" "$tmp/$other" "$tmp/kept"
done

train 2 --features most
train 2 --exit-threshold 1.5
train 2 -d auto
train 2 -d self
train 1 -o "$tmp/nowhere/file"
train 1 --json "$tmp/nowhere/file"
echo '{"prompt": "Only one"}' >"$tmp/one"
train 1 --memory 1M
prompts=$tmp/one train 2
has "$tmp/err" "two prompts"
echo 'no prompt' >"$tmp/none"
prompts=$tmp/none train 1
[ ! -e "$side" ] || wrong "a file after an error"

# Ended in the middle (the shell lets its background children ignore SIGINT).
# shellcheck disable=SC2016 # evaluated there
ends_by TERM 'grep -q "^train: " "$tmp/err"' "$drey" train exit -m "$tmp/m.gguf" -t 1 -n 20000 --prompts "$tmp/prompts"
if [ -e "$side" ] || [ -e "$side.partial" ]; then
    wrong "a file after SIGTERM"
fi
exit $failed
