#!/usr/bin/env bash
# The shared library exports exactly the functions that the public headers declare with DREY_API.
#   exports.sh LIBDREY.so
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
library=${1:?usage: exports.sh LIBDREY.so}

declared=$(grep -hv '^#' include/drey/*.h | tr '\n' ' ' | grep -oE 'DREY_API [^;(]*\(' |
    sed -E 's/.*[ *](drey_[a-z0-9_]+)\($/\1/' | sort)
[ "$(wc -l <<<"$declared")" -ge 20 ] || {
    echo "exports: the headers' functions were not recognised"
    exit 1
}
# Sanitizers add symbols of their own; they are not drey's to hide.
exported=$(nm -D --defined-only "$library" | awk '{ print $NF }' | sed 's/@.*//' |
    grep -vE '^(__asan|__ubsan|__tsan|__sancov|__odr_asan|___asan|_init$|_fini$)' | sort)
if ! diff <(echo "$declared") <(echo "$exported") >/dev/null; then
    echo "exports: declared in include/drey but not exported:"
    comm -23 <(echo "$declared") <(echo "$exported") | sed 's/^/  /'
    echo "exports: exported but not declared in include/drey:"
    comm -13 <(echo "$declared") <(echo "$exported") | sed 's/^/  /'
    exit 1
fi
