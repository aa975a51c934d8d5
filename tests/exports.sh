#!/usr/bin/env bash
# Both libraries export exactly the functions that the public headers declare with DREY_API.
#   exports.sh LIBDREY.so LIBDREY.a
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
usage="usage: exports.sh LIBDREY.so LIBDREY.a"
shared=${1:?$usage} static=${2:?$usage}

declared=$(grep -hv '^#' include/drey/*.h | tr '\n' ' ' | grep -oE 'DREY_API [^;(]*\(' |
    sed -E 's/.*[ *](drey_[a-z0-9_]+)\($/\1/' | sort)
[ "$(wc -l <<<"$declared")" -ge 20 ] || {
    echo "exports: the headers' functions were not recognised"
    exit 1
}
failed=0
compare() { # LIBRARY NM_OPTION: sanitizers add symbols of their own, which are not drey's to hide
    local exported
    exported=$(nm "$2" --defined-only "$1" | awk 'NF == 3 { print $NF }' | sed 's/@.*//' |
        grep -vE '^(__asan|__ubsan|__tsan|__sancov|__odr_asan|___asan|_init$|_fini$)' | sort)
    diff <(echo "$declared") <(echo "$exported") >/dev/null && return 0
    echo "exports: declared in include/drey but not exported by $1:"
    comm -23 <(echo "$declared") <(echo "$exported") | sed 's/^/  /'
    echo "exports: exported by $1 but not declared in include/drey:"
    comm -13 <(echo "$declared") <(echo "$exported") | sed 's/^/  /'
    failed=1
}
compare "$shared" -D
compare "$static" -g
exit $failed
