#!/usr/bin/env bash
# Each header compiles alone: it includes what it uses, so that the order of includes is free.
#   headers.sh COMPILER
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cc=${1:?usage: headers.sh COMPILER}

# Bodies that a tier's file includes after its own definitions, as their first lines say.
bodies=(src/kernel/{v16,rows_v16,delta_v16,attend_tile,attend_row_tile,pack_rows}.h src/kernel/arm/matmul_tiles.h
    src/kernel/x86/{words_8_ymm,decoded_ymm,books_ymm,tile_books_ymm}.h)
x86=(-mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mamx-tile -mamx-int8)
arm=(-march=armv8.2-a+dotprod+fp16+i8mm)
machine=$("$cc" -dumpmachine)

mapfile -t headers < <(find include common src tune bench train cli serve -name '*.h' | sort)
[ ${#headers[@]} -ge 50 ] || {
    echo "headers: only ${#headers[@]} files seen"
    exit 1
}
check() { # HEADER FLAG...: with a declaration, because a file of nothing but macros is no C
    local header=$1
    shift
    printf '#include "%s"\nextern int one;\n' "$PWD/$header" |
        "$cc" -std=c11 -fsyntax-only -D_GNU_SOURCE -Iinclude -Isrc -I. -Wall -Wextra -Werror \
            -Wno-unused-function -Wno-unused-const-variable "$@" -x c -
}
check_slice() { # FIRST: that header, and each Nth after it, for N processes
    local i header flags failed=0
    for ((i = $1; i < ${#headers[@]}; i += processes)); do
        header=${headers[i]}
        [[ " ${bodies[*]} " != *" $header "* ]] || continue
        flags=()
        case $header:$machine in
        src/kernel/*x86/*:x86_64*) flags=("${x86[@]}") ;;
        src/kernel/*arm/*:aarch64*) flags=("${arm[@]}") ;;
        src/kernel/*x86/* | src/kernel/*arm/*) continue ;; # of another machine
        esac
        check "$header" "${flags[@]}" || failed=1
    done
    return $failed
}
processes=$(nproc)
started=() failed=0
for ((first = 0; first < processes; first++)); do
    check_slice "$first" &
    started+=($!)
done
for process in "${started[@]}"; do
    wait "$process" || failed=1
done
exit $failed
