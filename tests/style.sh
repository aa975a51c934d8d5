#!/usr/bin/env bash
# What can be checked of the code's form: files under 1,000 lines, functions of at most 70 outside
# kernels and tests, clang-format, shellcheck and mandoc where they are installed, no machine's own paths,
# nothing large or generated.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
fail() { # HEADING LINES: nothing when there are no lines
    [ -n "$2" ] || return 0
    printf '%s\n' "style: $1" "$2"
    failed=1
}
mapfile -t sources < <(find src include cli examples tests fuzz -name '*.[ch]' 2>/dev/null | sort)
mapfile -t scripts < <(grep -lsE '^#!.*(bash|/sh)' -- *.sh .ci/run scripts/* tests/*.sh)
if [ ${#sources[@]} -lt 10 ] || [ ${#scripts[@]} -lt 5 ]; then
    echo "style: the files were not found"
    exit 1
fi

fail "files of 1,000 lines or more (split them by what they are about):" \
    "$(wc -l "${sources[@]}" | awk '$2 != "total" && $1 >= 1000 { print "  " $2 ": " $1 }')"

# clang-format puts a function's braces alone in the first column.
mapfile -t plain < <(printf '%s\n' "${sources[@]}" | grep -vE '^(src/kernel|tests)/')
fail "functions of more than 70 lines:" "$(awk '
    FNR == 1 { start = 0 }
    /^\{/ { start = FNR }
    /^\}/ { if (start && FNR - start + 1 > 70) print "  " FILENAME ":" start ": " FNR - start + 1
            start = 0 }' "${plain[@]}")"

# Options of the API have no dashes, and the command's flags are the command's business.
fail "the library names a flag or a subcommand of the command (use FAIL_HINT):" \
    "$(grep -nE '"([^"]*[ (])?(--?[a-z]|drey (run|plan|prepare|inspect|bench|tokenize|perplexity)\b)[^"]*"' \
        -r src --include='*.[ch]' || true)"

fail "lines that end in blanks:" "$(grep -nE '[[:blank:]]+$' "${sources[@]}" "${scripts[@]}" || true)"

if formatter=$(command -v clang-format-14 || command -v clang-format); then
    fail "not as clang-format would have it:" \
        "$("$formatter" --dry-run "${sources[@]}" 2>&1 | grep -E '^[^ ]+:[0-9]+:' | head -n 20)"
else
    echo "not run: clang-format is not installed"
fi
if command -v shellcheck >/dev/null; then
    fail "shellcheck says:" "$(shellcheck --format=gcc "${scripts[@]}" || true)"
else
    echo "not run: shellcheck is not installed"
fi

if ! command -v mandoc >/dev/null; then
    echo "not run: mandoc is not installed"
elif [ -f docs/drey.1 ]; then
    fail "mandoc says:" "$(mandoc -T lint -W warning docs/drey.1 || true)"
fi

if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    fail "paths of one machine:" "$(git grep -nIE '/(work|root|home)/[a-z.]' -- . ':!tests/style.sh' |
        cut -c1-160 || true)"
    fail "files of more than 1 MiB:" "$(git ls-files -z | xargs -0 -r du -k --apparent-size |
        awk '$1 > 1024 { print "  " $0 }')"
else
    echo "not run: this is not a git checkout, so what is committed cannot be listed"
fi
exit $failed
