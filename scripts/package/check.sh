#!/usr/bin/env bash
# Tries out packages on bare systems: Debian 12 and 13 (or the RELEASEs that are named) in a folder
# each, and busybox with musl, where a toy model has to write what the build here writes.
#   check.sh [--made DIR] [--keep DIR] [RELEASE...]
#     --made   those that release.sh has made in DIR; otherwise makes them
#     --keep   leaves packages and systems in DIR, for a look
# The packages: scripts/package/deb.sh, with lintian if that is installed; static.sh, also for
# aarch64 (under qemu, on processors of three kinds) if what that takes is installed; wheel.py, if
# Python has cffi. Where systemd-nspawn is installed, each system is booted, and its drey.service
# answers a client. What is not there is said in a line "not run: ...".
# Needs root, debootstrap and debhelper, 4 GB of disk and the network; takes a quarter of an hour.
set -euo pipefail
unset CDPATH
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_dir=$(realpath "$here/../..")
keep='' given=''
while [[ ${1-} == --* ]]; do
    case $1 in
    --keep) keep=$(realpath "${2:?a folder}") ;;
    --made) given=$(realpath "${2:?a folder}") ;;
    *)
        echo "usage: check.sh [--made DIR] [--keep DIR] [RELEASE...]" >&2
        exit 2
        ;;
    esac
    shift 2
done
releases=("$@")
[ $# -gt 0 ] || releases=(bookworm trixie)
[ "$(id -u)" = 0 ] || {
    echo "check: needs root (chroot)" >&2
    exit 1
}
work=${keep:-$(mktemp -d)}
[ -n "$keep" ] || trap 'rm -rf --one-file-system "$work"' EXIT
made=$work/made
mkdir -p "$made"
cd "$source_dir"
failed=0
note() { printf 'check: %s\n' "$*"; }
wrong() {
    note "WRONG: $*"
    failed=1
}

# ---- The packages, and the text that all of them have to write.
scripts/build.sh build --target=drey --target=make_toy -DBUILD_TESTING=ON
build/tests/make_toy "$work/toy.gguf" 3
text=(run -p "A text begins" -n 24 --ignore-eos -t 1 -q -d lookup --memory 64M)
expected=$work/expected
build/cli/drey "${text[@]}" -m "$work/toy.gguf" >"$expected"
# A toy writes bytes that are no text, for which Python has a sign.
python3 -c 'import sys; print(open(sys.argv[1], "rb").read().decode(errors="replace"), end="")' "$expected" \
    >"$expected.python"
# writes WHAT COMMAND...: the command, with these options, writes that text
writes() {
    local what=$1
    shift
    if "$@" >"$work/got" 2>"$work/err" && cmp -s "$expected" "$work/got"; then
        note "$what: ok"
    else
        wrong "$what: $(tail -n 3 "$work/err")"
    fi
}
if [ -n "$given" ]; then
    (cd "$given" && sha256sum -c --quiet SHA256SUMS) || wrong "SHA256SUMS"
    cp "$given"/drey-linux-* "$given"/*.whl "$given"/*"_$(dpkg --print-architecture).deb" "$made"
else
    "$here/deb.sh" "$made" >/dev/null
fi
note "made: $(cd "$made" && echo *.deb)"
if command -v lintian >/dev/null; then
    changes=("$made"/*.changes)
    [ -e "${changes[0]}" ] || changes=("$made"/*.deb)
    if lintian --allow-root --fail-on error,warning "${changes[@]}"; then
        note "lintian: ok"
    else
        wrong "lintian, see above"
    fi
else
    note "not run: lintian, which is not installed"
fi
one_file=$made/drey-linux-$(uname -m) arm=$made/drey-linux-aarch64
[ -n "$given" ] || "$here/static.sh" "$made" >/dev/null
wheel=''
if [ -n "$given" ]; then
    wheel=$(echo "$made"/*"_$(uname -m).whl")
elif python3 -c 'import cffi' 2>/dev/null; then
    wheel=$(python3 "$here/wheel.py" "$made" | tail -n 1) # before it, cffi says what it does
else
    note "not run: the wheel, for which Python needs cffi"
fi
qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static || true)
code=0
if [ -z "$given" ]; then
    "$here/static.sh" --arch aarch64 "$made" 2>"$work/err" >/dev/null || code=$?
elif [ ! -e "$arm" ]; then
    code=77
    echo "release.sh has not made it" >"$work/err"
fi
if [ $code = 77 ] || [ -z "$qemu" ]; then
    note "not run: aarch64: $([ $code = 77 ] && cat "$work/err" || echo "qemu-user is not installed")"
elif [ $code != 0 ]; then
    wrong "aarch64: $(tail -n 5 "$work/err")"
else
    for cpu_tier in cortex-a53:neon neoverse-n1:dotprod max:i8mm; do
        cpu=${cpu_tier%:*} tier=${cpu_tier#*:}
        # The table has the best tier first, and "?" for one that the processor lacks.
        best=$("$qemu" -cpu "$cpu" "$arm" bench kernels --list 2>/dev/null | awk -F ' *[|] *' '
            NR == 1 { for (i = 3; i < NF; i++) name[i] = $i }
            $2 == "F32" { for (i = 3; i < NF; i++) if ($i != "?") { print name[i]; exit } }')
        [ "$best" = "$tier" ] || wrong "aarch64 on $cpu: the tier is \"$best\" and not $tier"
        writes "aarch64 on $cpu, tier $best" "$qemu" -cpu "$cpu" "$arm" "${text[@]}" -m "$work/toy.gguf"
    done
fi

# ---- Bare systems.
mirror=$(scripts/package/debian-mirror.sh)
# What the packages ask for, but for each other.
needs=$(for deb in "$made"/*.deb; do dpkg-deb -f "$deb" Pre-Depends Depends; done |
    sed 's/^[A-Za-z-]*: //; s/([^)]*)//g' | tr -s ', ' '\n' | grep -v '^$' | grep -v drey | sort -u | tr '\n' ,)
for release in "${releases[@]}"; do
    root=$work/$release
    debootstrap --variant=minbase "--include=${needs}gcc,libc6-dev,pkgconf,python3-venv,python3-cffi,python3-ply,systemd,systemd-sysv" \
        "$release" "$root" ${mirror:+"$mirror"} >"$work/debootstrap.log" 2>&1 || {
        tail -n 5 "$work/debootstrap.log"
        wrong "debootstrap $release"
        continue
    }
    mkdir "$root/check"
    cp "$made"/*.deb ${wheel:+"$wheel"} "$work/toy.gguf" examples/simple.c "$here/check-service.sh" "$root/check"
    cp "$one_file" "$root/check/drey"
    in=(chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8)
    writes "$release, one file" "${in[@]}" /check/drey "${text[@]}" -m /check/toy.gguf
    if "${in[@]}" sh -c 'rm -f /check/*dbgsym*; dpkg -i /check/*.deb' >"$work/dpkg.log" 2>&1; then
        writes "$release, the package's command" "${in[@]}" drey "${text[@]}" -m /check/toy.gguf
    else
        wrong "$release, dpkg: $(tail -n 5 "$work/dpkg.log")"
    fi
    # shellcheck disable=SC2016 # for the shell inside
    if "${in[@]}" sh -ec 'cd /check; gcc simple.c -o simple $(pkg-config --cflags --libs drey)
        gcc simple.c -o simple-train $(pkg-config --cflags --libs drey-train)
        ./simple toy.gguf "A text" >a; ./simple-train toy.gguf "A text" >b; cmp a b; test -s a' >"$work/err" 2>&1; then
        note "$release, a program on the library: ok"
    else
        wrong "$release, a program on the library: $(cat "$work/err")"
    fi
    if [ -n "$wheel" ]; then
        # Debian's cffi, for want of a network inside.
        "${in[@]}" sh -ec 'python3 -m venv --system-site-packages /check/venv
            /check/venv/bin/pip install -q --no-index --no-deps /check/*.whl' >"$work/pip.log" 2>&1 || wrong "$release, pip: $(tail -n 3 "$work/pip.log")"
        # shellcheck disable=SC2016 # it is Python's
        expected=$work/expected.python writes "$release, the wheel" "${in[@]}" /check/venv/bin/python -c '
import drey
with drey.Model("/check/toy.gguf", memory="256M", draft="lookup", threads=1) as model:
    print("".join(model.generate("A text begins", max_tokens=24, ignore_eos=True)), end="")'
        writes "$release, the wheel's command" "${in[@]}" /check/venv/bin/drey "${text[@]}" -m /check/toy.gguf
    fi
    "$here/check-service.sh" boot "$root" || wrong "$release, the service"
done

# ---- A system without glibc: busybox and musl alone, as Alpine has them.
root=$work/musl
mkdir -p "$root/check" "$root/tmp" "$root/dev" "$work/musl-packages"
mknod -m 666 "$root/dev/null" c 1 3
if (cd "$work/musl-packages" && apt-get download busybox-static musl) >"$work/err" 2>&1; then
    for deb in "$work"/musl-packages/*.deb; do dpkg -x "$deb" "$root"; done
    cp "$one_file" "$root/check/drey"
    cp "$work/toy.gguf" "$root/check"
    in=(chroot "$root" /bin/busybox env -i PATH=/bin)
    writes "musl and busybox, one file" "${in[@]}" /check/drey "${text[@]}" -m /check/toy.gguf
    # shellcheck disable=SC2016 # for the shell inside
    if "${in[@]}" busybox sh -ec '/check/drey serve -m /check/toy.gguf --port 8199 --memory 256M >/check/log 2>&1 &
        server=$! tries=0
        until busybox wget -q -O /check/models http://127.0.0.1:8199/v1/models; do
            [ $((tries += 1)) -lt 60 ] || exit 1
            busybox sleep 1
        done
        kill $server; wait $server || true
        busybox grep -q toy /check/models' >"$work/err" 2>&1; then
        note "musl and busybox, a server: ok"
    else
        wrong "musl and busybox, a server: $(tail -n 3 "$work/err" "$root/check/log")"
    fi
else
    note "not run: a system of busybox and musl, which could not be fetched: $(tail -n 1 "$work/err")"
fi
[ $failed = 0 ] && note "all is well"
exit $failed
