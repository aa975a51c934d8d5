#!/usr/bin/env bash
# Makes all that a release has, in one folder, from the last commit:
#   release.sh [--only PART]... [--complete] [--work DIR] DIR
#     source   drey-VERSION.tar.gz, of which all else is made
#     static   drey-linux-x86_64, drey-linux-aarch64: one file that needs no other; and drey.1
#     wheel    Python packages, for both
#     deb      Debian packages, for both
#     notes    RELEASE-NOTES: this version's section of CHANGELOG.md
#   --only      this part alone; may be repeated
#   --complete  what this machine cannot make is a failure
#   --work      where it is built (2 GB); kept, so that parts of one commit share it
# SHA256SUMS and MANIFEST, which has sizes, are of what is in DIR. What this machine cannot make is
# named and counted, each with what it lacks. scripts/package/check.sh --made DIR tries out all of
# it. A tag v... on the commit has to be that of the version.
set -euo pipefail
unset CDPATH
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
usage() {
    sed -n '2,15s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
all=(source static wheel deb notes)
parts=() complete='' work='' dir=''
while [ $# -gt 0 ]; do
    case $1 in
    --only)
        [[ " ${all[*]} " == *" ${2-} "* ]] || usage
        parts+=("$2")
        shift
        ;;
    --complete) complete=yes ;;
    --work) work=${2:?} && shift ;;
    -*) usage ;;
    *) dir=$1 ;;
    esac
    shift
done
[ -n "$dir" ] || usage
[ ${#parts[@]} -gt 0 ] || parts=("${all[@]}")
wants() { [[ " ${parts[*]} " == *" $1 "* ]]; }

mkdir -p "$dir"
dir=$(realpath "$dir")
if [ -n "$work" ]; then
    mkdir -p "$work"
    work=$(realpath "$work")
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi

note() { echo "release: $*" >&2; }
die() {
    note "$*"
    exit 1
}
git -C "$source_dir" rev-parse HEAD >/dev/null 2>&1 || die "needs a checkout of git"
from() { git -C "$source_dir" show "HEAD:$1"; }
version=$(from CMakeLists.txt | sed -n 's/^project(drey VERSION \([0-9.]*\).*/\1/p')
for tag in $(git -C "$source_dir" tag --points-at HEAD 'v*'); do
    [ "$tag" = "v$version" ] || die "the tag is $tag, and CMakeLists.txt says $version"
done
[ -z "$(git -C "$source_dir" status --porcelain --untracked-files=no)" ] ||
    note "changes that are not committed are not in it"
# The time of the commit: what is made of one commit has the same dates.
SOURCE_DATE_EPOCH=$(git -C "$source_dir" log -1 --format=%ct)
DEBFULLNAME=${DEBFULLNAME:-$(git -C "$source_dir" log -1 --format=%an)}
DEBEMAIL=${DEBEMAIL:-$(git -C "$source_dir" log -1 --format=%ae)}
export SOURCE_DATE_EPOCH DEBFULLNAME DEBEMAIL

note "drey $version of commit $(git -C "$source_dir" rev-parse --short HEAD): ${parts[*]}"
name=drey-$version
git -C "$source_dir" archive --format=tar --prefix="$name/" HEAD | gzip -9n >"$work/$name.tar.gz"
# One commit is unpacked once: what was built of it stays built.
commit=$(git -C "$source_dir" rev-parse HEAD)
if [ "$(cat "$work/commit" 2>/dev/null)" != "$commit" ]; then
    rm -rf "${work:?}/$name"
    tar -C "$work" -xzf "$work/$name.tar.gz"
    echo "$commit" >"$work/commit"
fi
cd "$work/$name"

not_made=() failed=()
# produce WHAT COMMAND...: the command makes it; exit status 77 is that of what cannot run here
produce() {
    local what=$1 code=0
    shift
    note "$what"
    { "$@" 2>&1 >"$work/made" | tee "$work/said" >&2; } || code=$?
    case $code in
    0) ;;
    77) not_made+=("$what: $(tail -n 1 "$work/said" | sed 's/^[a-z]*: //')") ;;
    *) failed+=("$what") ;;
    esac
    return 0
}
wheel() { # ARCHITECTURE
    python3 -c 'import cffi' 2>/dev/null || {
        echo "wheel: Python needs cffi: sudo apt-get install python3-cffi, or pip install cffi in an environment" >&2
        return 77
    }
    # The one file's folder is configured for that architecture; its objects are the wheel's.
    scripts/package/static.sh ${1:+--arch "$1"} "$work/static" "$work/build-${1:-here}" || return
    python3 scripts/package/wheel.py "$dir" --build "$work/build-${1:-here}" ${1:+--arch "$1"}
}
debs() { # ARCHITECTURE: without those of debugging symbols
    rm -rf "$work/debs"
    scripts/package/deb.sh ${1:+--arch "$1"} "$work/debs" || return
    find "$work/debs" -name '*.deb' ! -name '*-dbgsym_*' -exec cp -t "$dir" {} +
}
manual() {
    scripts/build.sh "$work/build-here" --target=man_page || return
    cp "$work/build-here/drey.1" "$dir"
}
notes() {
    awk -v version="$version" '
        /^## / { on = $2 == version; next }
        on { text = text $0 "\n" }
        END {
            gsub(/^\n+|\n+$/, "", text)
            if (text == "") exit 1
            printf "# drey %s\n\n%s\n\n", version, text
            print "How to install these files: docs/guide/install.md. `sha256sum -c SHA256SUMS --ignore-missing` checks them."
        }' CHANGELOG.md >"$dir/RELEASE-NOTES" || {
        rm -f "$dir/RELEASE-NOTES"
        echo "CHANGELOG.md has no section $version" >&2
        return 1
    }
    ! grep -q "^## $version (unreleased)" CHANGELOG.md || note "CHANGELOG.md says that $version is unreleased"
}

here=$(uname -m)
others=()
[ "$here" = aarch64 ] || others=(aarch64)
if wants source; then cp "$work/$name.tar.gz" "$dir"; fi
if wants notes; then produce "release notes" notes; fi
if wants static; then produce "manual page" manual; fi
for arch in '' "${others[@]}"; do
    if wants static; then
        produce "one file for ${arch:-$here}" scripts/package/static.sh ${arch:+--arch $arch} "$dir" "$work/build-${arch:-here}"
    fi
    if wants wheel; then produce "Python package for ${arch:-$here}" wheel "$arch"; fi
    if wants deb; then produce "Debian packages for ${arch:-$here}" debs "${arch:+arm64}"; fi
done
[ "$here" != aarch64 ] || not_made+=("all for x86_64: this machine is an aarch64, and cross builds go the other way")

cd "$dir"
describe() { # FILE
    case $1 in
    *.tar.gz) echo "the source" ;;
    drey-linux-*) echo "one file that needs no other, for any Linux on ${1#drey-linux-}" ;;
    *.1) echo "the manual page" ;;
    *.whl) echo "the Python package" ;;
    drey_*.deb) echo "Debian: the command and its service" ;;
    libdrey-dev_*) echo "Debian: headers and static libraries" ;;
    libdrey-train*.deb) echo "Debian: the shared library with trainers" ;;
    *.deb) echo "Debian: the shared library" ;;
    *) echo "what is new" ;;
    esac
}
: >MANIFEST
files=()
for file in *; do
    case $file in
    MANIFEST | SHA256SUMS) ;;
    *)
        files+=("$file")
        printf '%10d  %-50s %s\n' "$(stat -c %s "$file")" "$file" "$(describe "$file")" >>MANIFEST
        ;;
    esac
done
sha256sum "${files[@]}" MANIFEST >SHA256SUMS
cat MANIFEST >&2
note "${#files[@]} file$([ ${#files[@]} = 1 ] || echo s), $(du -cb "${files[@]}" | awk 'END { printf "%.1f", $1 / 1e6 }') MB, in $dir"
for what in ${failed[@]+"${failed[@]}"}; do note "FAILED: $what, see above"; done
for what in ${not_made[@]+"${not_made[@]}"}; do note "not made here: $what"; done
note "not made: ${#not_made[@]}, failed: ${#failed[@]}"
[ ${#failed[@]} = 0 ] && { [ -z "$complete" ] || [ ${#not_made[@]} = 0 ]; }
