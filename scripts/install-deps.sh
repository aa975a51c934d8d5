#!/usr/bin/env bash
# Installs the Debian packages that building drey needs, and only those that are missing.
#   install-deps.sh [--tests] [--small | --optional] [--release] [--check]
#     --tests   also what ./test.sh uses: cmocka, clang-14 with its sanitizers, an aarch64 compiler
#               with qemu, what tests/style.sh asks (clang-format-14, shellcheck, mandoc), and Open
#               MPI for several machines (12.5 MB to download, 53 MB on disk)
#     --small   also the small ones of what follows: shells, node
#     --optional  also what single tests use where it is there (CONTRIBUTING.md has the list): other
#               shells, a browser, node, an OpenCL device, systemd's tools; some 800 MB on disk
#     --release  also what scripts/package/release.sh uses, with libraries of arm64
#     --check   installs nothing; exit 1 and a list of what is missing
# Says before it installs, and in a line meanwhile, what is done; asks nothing.
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
release_packages=(build-essential debhelper python3-cffi qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross
    libedit-dev:arm64 libpcre2-dev:arm64 liburing-dev:arm64 libxxhash-dev:arm64)
optional_packages=("${small_packages[@]}" chromium pocl-opencl-icd systemd)
. "$(dirname "${BASH_SOURCE[0]}")/terminal/moving_line.sh"
check=false release=false asked=''
for arg in "$@"; do
    case $arg in
    --tests) packages+=("${test_packages[@]}") ;;
    --small) packages+=("${small_packages[@]}") ;;
    --optional) packages+=("${optional_packages[@]}") ;;
    --release)
        packages+=("${release_packages[@]}")
        release=true
        ;;
    --check)
        check=true
        continue
        ;;
    *)
        echo "usage: install-deps.sh [--tests] [--small | --optional] [--release] [--check]" >&2
        exit 2
        ;;
    esac
    asked+=" $arg"
done

if ! command -v dpkg-query >/dev/null; then
    echo "install-deps: no dpkg here. What is needed, by its Debian 12 names: ${packages[*]}" >&2
    exit 0
fi

# A cross package for the machine's own architecture does not exist: there the native one does.
if [ "$(dpkg --print-architecture)" = arm64 ]; then
    kept=()
    for p in "${packages[@]}"; do
        case $p in gcc-aarch64-linux-gnu | libc6-dev-arm64-cross | *:arm64) ;; *) kept+=("$p") ;; esac
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
names() { echo "${missing[@]}" | fold -s -w 90 | sed 's/^/  /; s/ *$//'; }
if $check; then
    echo "missing packages (scripts/install-deps.sh$asked installs them):"
    names
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
{
    echo "missing packages, which apt-get installs now (a minute or so):"
    names
} >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
doing='asking for the lists of packages'
apt_says() { # LINE of apt's status, such as pmstatus:gcc:40.1:Unpacking gcc
    if [[ $doing != asking* && $1 =~ ^(dl|pm)status:[^:]*:([0-9]+)[^:]*:(.*) ]]; then
        doing="installing packages: ${BASH_REMATCH[2]} %, ${BASH_REMATCH[3]}"
        [ "${BASH_REMATCH[1]}" = pm ] || doing="fetching packages: ${BASH_REMATCH[2]} %"
    fi
    text="$doing, $((SECONDS - moving_began)) s"
}
apt() { # quiet but for one line; what it said is shown when it fails
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o APT::Status-Fd=1 \
        -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 "$@" </dev/null 2>&1 | moving "$log" apt_says || {
        grep -vE '^(dl|pm)status:' "$log" | tail -n 30 >&2
        echo "install-deps: apt-get $1 failed, see above" >&2
        exit 1
    }
}
if $release && [ "$(dpkg --print-architecture)" != arm64 ]; then
    "${as_root[@]}" dpkg --add-architecture arm64
fi
apt update
doing='installing packages'
apt install --no-install-recommends "${missing[@]}"
