#!/usr/bin/env bash
# Installs the Debian packages that building drey needs, and only those that are missing.
#   install-deps.sh [--tests] [--small | --optional] [--check]
#     --tests   also what ./test.sh uses: cmocka, clang-14 with its sanitizers, an aarch64 compiler
#               with qemu, what tests/style.sh asks (clang-format-14, shellcheck, mandoc), and Open
#               MPI for several machines (12.5 MB to download, 53 MB on disk)
#     --small   also the small ones of what follows: shells, node
#     --optional  also what single tests use where it is there (CONTRIBUTING.md has the list): other
#               shells, a browser, node, an OpenCL device, systemd's tools; some 800 MB on disk
#     --check   installs nothing; exit 1 and a list of what is missing
# Needs root or sudo, but only when something is missing. On a system without dpkg it names the
# packages and leaves the rest to cmake's own checks.
set -euo pipefail

packages=(gcc libc6-dev make cmake ninja-build pkg-config git ca-certificates curl
    liburing-dev libpcre2-dev libxxhash-dev libedit-dev
    python3 python3-pip)
test_packages=(libcmocka-dev clang-14 libclang-rt-14-dev
    gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
    clang-format-14 shellcheck mandoc
    openmpi-bin libopenmpi-dev)
small_packages=(zsh fish nodejs python3-venv)
optional_packages=("${small_packages[@]}" chromium pocl-opencl-icd systemd)
check=false
for arg in "$@"; do
    case $arg in
    --tests) packages+=("${test_packages[@]}") ;;
    --small) packages+=("${small_packages[@]}") ;;
    --optional) packages+=("${optional_packages[@]}") ;;
    --check) check=true ;;
    *)
        echo "usage: install-deps.sh [--tests] [--small | --optional] [--check]" >&2
        exit 2
        ;;
    esac
done

if ! command -v dpkg-query >/dev/null; then
    echo "install-deps: no dpkg here. What is needed, by its Debian 12 names: ${packages[*]}" >&2
    exit 0
fi

# A cross package for the machine's own architecture does not exist: there the native one does.
if [ "$(dpkg --print-architecture)" = arm64 ]; then
    kept=()
    for p in "${packages[@]}"; do
        case $p in gcc-aarch64-linux-gnu | libc6-dev-arm64-cross) ;; *) kept+=("$p") ;; esac
    done
    packages=("${kept[@]}")
fi

missing=()
for p in "${packages[@]}"; do
    # Status, not existence: the name of a removed package stays.
    state=$(dpkg-query -W -f='${db:Status-Status}\n' "$p" 2>/dev/null | head -n 1) || true
    [ "$state" = installed ] || missing+=("$p")
done
[ ${#missing[@]} -gt 0 ] || exit 0
if $check; then
    printf '%s\n' "${missing[@]}"
    exit 1
fi

as_root=()
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "install-deps: missing packages, and neither root nor sudo to install them. As root:" >&2
        echo "  apt-get install ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi
echo "install-deps: installing with apt-get (a minute or so): ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { # quiet; what it said is shown when it fails
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
        -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 "$@" </dev/null >"$log" 2>&1 || {
        tail -n 30 "$log" >&2
        echo "install-deps: apt-get $1 failed, see above" >&2
        exit 1
    }
}
apt update
apt install --no-install-recommends "${missing[@]}"
