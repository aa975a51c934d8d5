#!/usr/bin/env bash
# drey train eagle and drey run -d LAYER: what is said and written as JSON, the same text with the
# layer and without, and that -d auto finds it.
#   trained_eagle.sh DREY MAKE_TOY
. "$(dirname "$0")/../cli/shell.sh"
"$make_toy" "$tmp/m.gguf" 3
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
ends 2 "$drey" run -m "$tmp/m.gguf" -d "$layer" --exit exact -p x
has "$tmp/err" "do not go together: it guesses from the last layers"
ends 2 "$drey" train exit -m "$tmp/m.gguf" -d "$layer" -q
has "$tmp/err" "cannot be trained with the drafter .eagle.: it guesses from the last layers"
ends 2 "$drey" train eagle -m "$tmp/m.gguf" -o "$tmp/m.gguf" -q
has "$tmp/err" "m.gguf(, which is read| is there and is no layer)"
exit $failed
