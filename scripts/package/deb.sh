#!/usr/bin/env bash
# Makes the Debian packages of this source: drey, libdrey0.1, libdrey-train0.1, libdrey-dev.
#   deb.sh DIR
# They go to DIR, with those of the debugging symbols. Needs debhelper, besides what
# scripts/install-deps.sh installs. DEBFULLNAME and DEBEMAIL name who makes the packages; else the
# last commit's author does.
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
dir=${1:?usage: deb.sh DIR}
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
sed -i "s/@SOVERSION@/$soversion/g; s/@MAINTAINER@/$maintainer/" debian/control debian/copyright
cat >debian/changelog <<CHANGES
drey ($version) unstable; urgency=medium

  * See changelog.gz: CHANGELOG.md of drey.

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
CHANGES
dpkg-buildpackage --build=binary --no-sign -j"${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" >"$work/log" 2>&1 || {
    tail -n 40 "$work/log" >&2
    exit 1
}
cp "$work"/drey_*.changes "$work"/drey_*.buildinfo "$work"/*.deb "$dir"
ls "$dir"/*.deb
