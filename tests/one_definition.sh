#!/usr/bin/env bash
# No function or variable is defined twice in the archives that make the command: the linker would
# take either one, for both who mean theirs.
#   one_definition.sh ARCHIVE...
set -euo pipefail
twice=$(nm --defined-only --extern-only "$@" | awk 'NF == 3 && $2 ~ /[TDBRC]/ { print $3 }' |
    grep -vE '^(__?asan|__odr_asan|__tsan|__ubsan|__gcov)' | sort | uniq -d)
if [ -n "$twice" ]; then
    printf 'defined twice: %s\n' "$twice"
    exit 1
fi
