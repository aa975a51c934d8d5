#!/usr/bin/env bash
# Makes the Debian packages of this source: drey, libdreyN, libdrey-trainN (N: the version of the
# interface) and libdrey-dev.
#   deb.sh [--arch arm64] DIR
# They go to DIR, with those of the debugging symbols. --arch makes those of another architecture
# than this machine's. What it needs besides scripts/install-deps.sh, debhelper and for arm64 the
# cross compiler with qemu-user, is named if it is missing, with exit status 77. DEBFULLNAME and
# DEBEMAIL name who makes the packages; else the last commit's author does.
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$source_dir/scripts/package/cross.sh"
. "$source_dir/scripts/terminal/moving_line.sh"
usage="usage: deb.sh [--arch arm64] DIR"
arch=''
if [ "${1-}" = --arch ]; then
    arch=${2:?$usage}
    shift 2
fi
dir=${1:?$usage}
if ! command -v dh >/dev/null || ! command -v dpkg-buildpackage >/dev/null; then
    echo "deb: needs debhelper: sudo apt-get install debhelper" >&2
    exit 77
fi
options=()
if [ -n "$arch" ] && [ "$arch" != "$(dpkg --print-architecture)" ]; then
    if [ "$arch" != arm64 ]; then
        echo "deb: for $arch there is no cross compiler that this script knows; only arm64 has one" >&2
        exit 1
    fi
    cross_begin deb
    command -v qemu-aarch64 >/dev/null || {
        echo "deb: arm64 needs qemu-user, which runs the command for its completions: sudo apt-get install qemu-user" >&2
        exit 77
    }
    # Without a look at what the packages say they need: that is this machine's own.
    options=(--host-arch arm64 -d)
fi
mkdir -p "$dir"
dir=$(realpath "$dir")

version=$(sed -n 's/^project(drey VERSION \([0-9.]*\).*/\1/p' "$source_dir/CMakeLists.txt")
case $version in 0.*) soversion=${version%.*} ;; *) soversion=${version%%.*} ;; esac
author=$(git -C "$source_dir" log -1 --format='%an <%ae>' 2>/dev/null) || author=''
maintainer=${DEBEMAIL:+${DEBFULLNAME:-drey} <$DEBEMAIL>}
maintainer=${maintainer:-${author:-drey <drey@localhost>}}
# The time of the commit, so that one commit makes the same packages every time.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$source_dir" log -1 --format=%ct 2>/dev/null || date +%s)}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/drey-$version
mkdir "$tree"
tar -C "$source_dir" --exclude=./.git --exclude='./build*' --exclude=./heads -c . | tar -C "$tree" -x
cp -r "$source_dir/scripts/package/debian" "$tree/debian"
cd "$tree"
for library in libdrey libdrey-train; do
    mv "debian/$library.install" "debian/$library$soversion.install"
done
named=$(printf '%s' "$maintainer" | sed 's/[\\/&]/\\&/g') # a name may have any of them
sed -i "s/@SOVERSION@/$soversion/g; s/@MAINTAINER@/$named/" debian/control debian/copyright
cat >debian/changelog <<CHANGES
drey ($version) unstable; urgency=medium

  * See CHANGELOG.md of the source.

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
CHANGES
steps=''
says() { # LINE of dpkg-buildpackage: what runs (dh_strip), or ninja's own count
    if [[ $1 =~ ^\[[0-9]+/[0-9]+\] ]]; then
        steps="${BASH_REMATCH[0]} compiling"
    elif [[ $1 =~ ^\ {3}(dh_[a-z_]+) ]]; then
        steps=${BASH_REMATCH[1]}
    fi
    text="making Debian packages${arch:+ for $arch}: ${steps:-preparing}, $((SECONDS - moving_began)) s"
}
echo "making Debian packages${arch:+ for $arch} of drey $version: all is compiled once more, with Debian's options" >&2
dpkg-buildpackage --build=binary --no-sign -j"${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" ${options[@]+"${options[@]}"} \
    </dev/null 2>&1 | moving "$work/log" says || {
    tail -n 40 "$work/log" >&2
    exit 1
}
cp "$work"/drey_*.changes "$work"/drey_*.buildinfo "$work"/*.deb "$dir"
cd "$work"
for package in *.deb; do echo "$dir/$package"; done
