#!/usr/bin/env bash
# The libraries export exactly the functions that their public headers declare with DREY_API:
# libdrey all except those of train.h, libdrey-train all.
#   exports.sh LIBDREY.so LIBDREY.a LIBDREY-TRAIN.so LIBDREY-TRAIN.a
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# = 4 ] || {
    echo "usage: exports.sh LIBDREY.so LIBDREY.a LIBDREY-TRAIN.so LIBDREY-TRAIN.a"
    exit 2
}

declared() { # HEADER...
    cat "$@" | grep -v '^#' | tr '\n' ' ' | grep -oE 'DREY_API [^;(]*\(' |
        sed -E 's/.*[ *](drey_[a-z0-9_]+)\($/\1/' | sort
}
failed=0
compare() { # DECLARED LIBRARY NM_OPTION: sanitizers add symbols of their own, which are not drey's to hide
    local exported
    exported=$(nm "$3" --defined-only "$2" | awk 'NF == 3 { print $NF }' | sed 's/@.*//' |
        grep -vE '^(__asan|__ubsan|__tsan|__sancov|__odr_asan|___asan|_init$|_fini$)' | sort)
    diff <(echo "$1") <(echo "$exported") >/dev/null && return 0
    echo "exports: declared in include/drey but not exported by $2:"
    comm -23 <(echo "$1") <(echo "$exported") | sed 's/^/  /'
    echo "exports: exported by $2 but not declared in include/drey:"
    comm -13 <(echo "$1") <(echo "$exported") | sed 's/^/  /'
    failed=1
}
mapfile -t of_run < <(find include/drey -name '*.h' ! -name train.h)
run=$(declared "${of_run[@]}")
all=$(declared include/drey/*.h)
if [ "$(wc -l <<<"$run")" -lt 20 ] || [ "$(wc -l <<<"$all")" -le "$(wc -l <<<"$run")" ]; then
    echo "exports: the headers' functions were not recognised"
    exit 1
fi
compare "$run" "$1" -D
compare "$run" "$2" -g
compare "$all" "$3" -D
compare "$all" "$4" -g
exit $failed
