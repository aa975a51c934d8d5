#!/usr/bin/env bash
# drey train eagle and drey run -d LAYER: what is said and written as JSON, the same text with the
# layer and without, and that -d auto finds it.
#   trained_eagle.sh DREY MAKE_TOY
. "$(dirname "$0")/../cli/shell.sh"
"$make_toy" "$tmp/m.gguf" 5
layer=$tmp/m.gguf.eagle.gguf

write -d none
mv "$tmp/text" "$tmp/plain"
ends 0 "$drey" train eagle -m "$tmp/m.gguf" -t 2 -n 1500 --epochs 2 --json "$tmp/json"
trained "$layer" guesses guess 3
has "$tmp/inspect" "eagle3.extract_layers"
for policy in sequence specinfer llmcad edgellm optimal; do
    write -d "$layer" --policy $policy
    same "another text with $policy" "$tmp/text" "$tmp/plain"
done
# With most of the target's keys and values in a file, next to the program, which is on a disk.
long=(run -m "$tmp/m.gguf" -t 2 -n 700 -c 800 --ignore-eos -p "The quick brown")
ends 0 "$drey" "${long[@]}" -d none -q
mv "$tmp/out" "$tmp/plain"
folder=$(dirname "$drey")
for draft in "$layer" lookup; do
    if [ "$(stat -f -c %T "$folder")" = tmpfs ]; then
        echo "trained_eagle: not run: keys and values in a file: $folder is in memory (tmpfs)"
        break
    fi
    ends 0 "$drey" "${long[@]}" -d "$draft" --kv-folder "$folder" --kv-memory 1 --stats "$tmp/stats"
    same "another text with keys and values in a file, $draft" "$tmp/out" "$tmp/plain"
    holds "nothing was read from the file, $draft" "$tmp/stats" "read_bytes > 100000"
done
ends 2 "$drey" run -m "$layer" -d none -p x
has "$tmp/err" "is a layer after another model and cannot write alone"
# SpecEE's own setting: the layer names the candidates of early exits, which read what left early.
printf '{"prompt": "%s"}\n' "Reverse a list" "int main(void)" "Write a letter" >"$tmp/prompts"
ends 0 "$drey" train exit -m "$tmp/m.gguf" -d "$layer" --prompts "$tmp/prompts" -t 2 -n 24 -q
for policy in single optimal specinfer; do
    ends 0 "$drey" run -m "$tmp/m.gguf" -d "$layer" --exit exact --exit-threshold 0.3 --policy $policy -t 2 -n 60 --ignore-eos \
        -p "The quick brown" --raw-ids -q --stats "$tmp/stats"
    [ $policy = single ] && mv "$tmp/out" "$tmp/single"
    [ $policy = single ] || same "exits with $policy: another text" "$tmp/out" "$tmp/single"
    holds "exits with $policy" "$tmp/stats" "exits['looks'] > 0"
done
ends 0 "$drey" run -m "$tmp/m.gguf" -d none -t 2 -n 60 --ignore-eos -p "The quick brown" --raw-ids -q
same "exits: another text than the target's" "$tmp/single" "$tmp/out"
ends 2 "$drey" train eagle -m "$tmp/m.gguf" -o "$tmp/m.gguf" -q
has "$tmp/err" "m.gguf(, which is read| is there and is no layer)"
exit $failed
