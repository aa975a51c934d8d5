#!/usr/bin/env bash
# drey quantize: a model with fewer bits that runs, and what is refused with a sentence.
# drey imatrix, and that quantize takes what it writes.
#   cli_quantize.sh DREY MAKE_TOY
. "$(dirname "$0")/shell.sh"

"$make_toy" "$tmp/q8.gguf" 60
q() { ends 0 "$drey" quantize "$@"; }

# 1. There and back: a file that runs, in any number of threads the same.
q "$tmp/q8.gguf" "$tmp/f16.gguf" f16 --allow-requantize
has "$tmp/out" "^written: "
q "$tmp/f16.gguf" "$tmp/m.gguf" Q4_K_M -t 1 -q
[ -z "$(cat "$tmp/out" "$tmp/err")" ] || wrong "-q: $(cat "$tmp/out" "$tmp/err")"
q "$tmp/f16.gguf" "$tmp/same.gguf" Q4_K_M -t 2 --memory 400M
same "threads and memory" "$tmp/m.gguf" "$tmp/same.gguf"
write -c 64
[ -s "$tmp/text" ] || wrong "the quantised model writes nothing"
ends 0 "$drey" inspect "$tmp/m.gguf"
has "$tmp/out" "general.file_type .*15"

# 2. Refusals leave nothing.
refused 2 "name a model, the file to write, and a type" "$drey" quantize "$tmp/f16.gguf"
refused 2 "unexpected argument" "$drey" quantize a b c d
refused 2 "is no type to quantise to" "$drey" quantize "$tmp/f16.gguf" "$tmp/no.gguf" Q4_K_Z
refused 2 "is what is read" "$drey" quantize "$tmp/f16.gguf" "$tmp/f16.gguf" Q8_0 --force
refused 2 "exists; name another file.*--force" "$drey" quantize "$tmp/f16.gguf" "$tmp/m.gguf" Q8_0
refused 1 "quantised already" "$drey" quantize "$tmp/q8.gguf" "$tmp/no.gguf" Q4_K_M
refused 1 "no importance matrix" "$drey" quantize "$tmp/f16.gguf" "$tmp/no.gguf" Q4_K_M --imatrix "$0"
refused 1 "needs [0-9.]+M of memory" "$drey" quantize "$tmp/f16.gguf" "$tmp/no.gguf" Q4_K_M --memory 1M
head -c 100000 "$tmp/f16.gguf" >"$tmp/cut.gguf"
refused 1 "not all there" "$drey" quantize "$tmp/cut.gguf" "$tmp/no.gguf" Q4_K_M
# 3. What matters, by a text: the same in any number of threads and memory. It changes the result.
im() { ends 0 "$drey" imatrix -m "$tmp/q8.gguf" --window 64 "$@"; }
im -f CONTRIBUTING.md -o "$tmp/im" -t 1
has "$tmp/out" "^written: [0-9]+ matrices, over [0-9]+ tokens in [0-9]+ windows?; drey quantize [^ ]+ NEW.gguf Q4_K_M --imatrix [^ ]+ takes it$"
has "$tmp/err" "^reading: "
im -o "$tmp/im2" -t 2 --memory 400M -q <CONTRIBUTING.md
[ -z "$(cat "$tmp/out" "$tmp/err")" ] || wrong "imatrix -q: $(cat "$tmp/out" "$tmp/err")"
im -f CONTRIBUTING.md -o "$tmp/im2" -t 2 --memory 400M --force
same "imatrix: threads and memory" "$tmp/im" "$tmp/im2"
ends 0 "$drey" inspect "$tmp/im"
has "$tmp/out" "imatrix.datasets .*CONTRIBUTING.md"
q "$tmp/f16.gguf" "$tmp/with.gguf" Q4_K_M --imatrix "$tmp/im"
has "$tmp/out" "^2 of them are not in the importance matrix, " # embedding and head
cmp -s "$tmp/m.gguf" "$tmp/with.gguf" && wrong "importance changes nothing"
refused 2 "takes an importance matrix to say which.*drey imatrix -f TEXT -o FILE -m [^ ]*f16.gguf, and --imatrix FILE" \
    "$drey" quantize "$tmp/f16.gguf" "$tmp/no.gguf" IQ3_XXS
q "$tmp/f16.gguf" "$tmp/m.gguf" iq2_m --imatrix "$tmp/im" --force
write -c 64
[ -s "$tmp/text" ] || wrong "the model in IQ2_M writes nothing"
refused 2 "name the file to write with -o" "$drey" imatrix -m "$tmp/q8.gguf"
refused 2 "exists; name another file.*--force" "$drey" imatrix -m "$tmp/q8.gguf" -f CONTRIBUTING.md -o "$tmp/im"
refused 2 "would write over" "$drey" imatrix -m "$tmp/q8.gguf" -f CONTRIBUTING.md -o "$tmp/q8.gguf" --force
refused 2 "the text is empty" "$drey" imatrix -m "$tmp/q8.gguf" -o "$tmp/no.gguf"
refused 1 "cannot open" "$drey" imatrix -m "$tmp/q8.gguf" -o "$tmp/no.gguf" -f "$tmp/none"
refused 1 "memory" "$drey" imatrix -m "$tmp/q8.gguf" -o "$tmp/no.gguf" -f CONTRIBUTING.md --memory 1M
refused 1 "cannot write .*No such file" "$drey" imatrix -m "$tmp/q8.gguf" -f CONTRIBUTING.md -o "$tmp/no/such"
[ -z "$(find "$tmp" -name "no.gguf*")" ] || wrong "a refusal left a file"
exit $failed
