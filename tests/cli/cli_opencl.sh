#!/usr/bin/env bash
# --units with an OpenCL or a CUDA device: the text is the processor's, whatever part the device
# has, of attention too, whose boundary drey tune finds; where the library is broken or crashes, or
# there is no such device, one sentence.
#   cli_opencl.sh DREY MAKE_TOY CRASHING_OPENCL [FOLDER_OF_LIBDREY_CUDA]
. "$(dirname "$0")/shell.sh" # its SHIM is the OpenCL library that crashes
"$make_toy" "$tmp/target.gguf" 3
text=("$drey" run -m "$tmp/target.gguf" -d none -p "A text begins" -n 12 --ignore-eos -q)
"${text[@]}" -t 2 >"$tmp/expected"
export POCL_CACHE_DIR=$tmp/cache # PoCL keeps what it compiles
kind=opencl name=OpenCL
[ $# -lt 4 ] || kind=cuda name=CUDA

# refuses SENTENCE UNITS [FOLDER]: a run fails with it; FOLDER holds the OpenCL library
refuses() {
    local code=0
    LD_LIBRARY_PATH=${3:+$3:}${LD_LIBRARY_PATH-} "${text[@]}" --units "$2" >"$tmp/out" 2>"$tmp/err" || code=$?
    [[ $code != 0 && $code -lt 128 ]] || wrong "$2: exit code $code"
    [[ $(wc -l <"$tmp/err") == 1 && $(cat "$tmp/err") == *"$1"* && ! -s $tmp/out ]] || wrong "$2: $(cat "$tmp/err")"
}
mkdir "$tmp/broken" "$tmp/crashing"
echo "no library" >"$tmp/broken/libOpenCL.so.1"
cp "$shim" "$tmp/crashing/libOpenCL.so.1"
refuses "there is no OpenCL library here: " cpu+opencl "$tmp/broken"
refuses "the OpenCL library crashes when it is opened (" cpu+opencl "$tmp/crashing"
mkdir "$tmp/broken-cuda"
read -r _ version _ < <("$drey" --version)
echo "no library" >"$tmp/broken-cuda/libdrey-cuda.so.$version"
refuses "there is no CUDA library here: " cpu+cuda "$tmp/broken-cuda"

export LD_LIBRARY_PATH=${4:+$4:}${LD_LIBRARY_PATH-}
if ! "${text[@]}" --units cpu+$kind >"$tmp/out" 2>"$tmp/err"; then
    [ $failed = 0 ] || exit 1
    echo "skipped: no $name device is tested: $(cat "$tmp/err")"
    exit 77
fi
same "another text" "$tmp/out" "$tmp/expected"
for units in "cpu=0+$kind=1+static" "cpu=1/threads=1+$kind:0=3"; do
    ends 0 "${text[@]}" --units "$units"
    same "$units: another text" "$tmp/out" "$tmp/expected"
done

# Of a mixture a device computes what all tokens use; experts are the processor's.
DREY_TEST_EXPERTS=1 "$make_toy" "$tmp/experts.gguf" 2
mixture=("$drey" run -m "$tmp/experts.gguf" -d none -p "A text begins" -n 12 --ignore-eos -q)
"${mixture[@]}" -t 2 >"$tmp/experts"
ends 0 "${mixture[@]}" --units cpu+$kind+static --stats "$tmp/stats"
same "another text of a mixture" "$tmp/out" "$tmp/experts"
holds "parts of a mixture" "$tmp/stats" "experts_used > 0" "all(u['groups'] > 0 for u in units)"

# After 256 positions the dense part of attention is the device's, unless it says why not.
export XDG_CACHE_HOME=$tmp/profiles
long=("$drey" run -m "$tmp/target.gguf" -d none -p "$(printf 'A text %.0s' {1..60})" -n 4 --ignore-eos -q)
"${long[@]}" -t 2 >"$tmp/expected"
ends 0 "${long[@]}" --units cpu/threads=1+$kind+static --stats "$tmp/stats"
same "another text after a long one" "$tmp/out" "$tmp/expected"
ends 0 "$drey" tune -m "$tmp/target.gguf" --units cpu/threads=1+$kind -c 300 -q --json "$tmp/tuned"
python3 - "$tmp/stats" "$tmp/tuned" <<'PYTHON' || wrong "who attends: $(cat "$tmp/stats" "$tmp/tuned")"
import json, sys
device = json.load(open(sys.argv[1]))["units"][1]
assert "failed" not in device and (device["dense_blocks"] > 0) == ("no_attention" not in device)
attention = json.load(open(sys.argv[2]))["division"].get("attention", [])
assert len(attention) == (device["dense_blocks"] > 0)
PYTHON

refuses "there is no $name device \"77\" here; there is: 0 \"" cpu+$kind:77
exit $failed
