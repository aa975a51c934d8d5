#!/usr/bin/env bash
# drey quantize: a model with fewer bits that runs, and what is refused with a sentence.
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
refused 1 "MiB of memory" "$drey" quantize "$tmp/f16.gguf" "$tmp/no.gguf" Q4_K_M --memory 1M
head -c 100000 "$tmp/f16.gguf" >"$tmp/cut.gguf"
refused 1 "not all there" "$drey" quantize "$tmp/cut.gguf" "$tmp/no.gguf" Q4_K_M
[ -z "$(find "$tmp" -name "no.gguf*")" ] || wrong "a refusal left a file"
exit $failed
