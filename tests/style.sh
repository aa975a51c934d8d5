#!/usr/bin/env bash
# What can be checked of the code's form: files under 1,000 lines with unique names, folders of at
# most 30 files, functions of at most 70 lines, structs of at most 25 fields; clang-format, mandoc,
# and shellcheck; no machine's own paths, nothing large or generated; and of its words: plain
# English, comments of 100 columns, no file named that is gone (prose.py). The three tools have to
# be there: scripts/install-deps.sh --tests installs them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
fail() { # HEADING LINES: nothing when there are no lines
    [ -n "$2" ] || return 0
    printf '%s\n' "style: $1" "$2"
    failed=1
}
mapfile -t sources < <(find common src include tune bench train cli serve examples tests -name '*.[ch]' | sort)
mapfile -t scripts < <(find ./*.sh .ci/run scripts tests -type f -exec grep -lE '^#!.*(bash|/sh)' {} + | sed 's|^\./||' | sort)
if [ ${#sources[@]} -lt 10 ] || [ ${#scripts[@]} -lt 5 ]; then
    echo "style: the files were not found"
    exit 1
fi

fail "files of 1,000 lines or more (split them by what they are about):" \
    "$(wc -l "${sources[@]}" | awk '$2 != "total" && $1 >= 1000 { print "  " $2 ": " $1 }')"

# Files of data (the fuzzers' corpora, golden values) are not counted.
fail "folders of more than 30 files (divide them by what they are about):" \
    "$(find common src include tune bench train cli serve tests scripts docs -type f ! -path '*/corpus/*' ! -path '*/data/*' \
        ! -path '*/__pycache__/*' -printf '%h\n' | sort | uniq -c | awk '$1 > 30 { print "  " $2 ": " $1 }')"

# tests/kernel/emulated/kernel has replacements for headers of src/kernel, under the same names.
fail "file names that are in the tree twice (a name says which file is meant):" \
    "$(printf '%s\n' "${sources[@]}" "${scripts[@]}" cmake/*.cmake tests/*.cmake |
        grep -v '^tests/kernel/emulated/kernel/' | sed 's|.*/||' | sort | uniq -d | sed 's/^/  /')"

# Programs of any compiler include include/: its headers have guards.
mapfile -t internal < <(printf '%s\n' "${sources[@]}" | grep '\.h$' | grep -v '^include/')
fail "headers without #pragma once:" "$(grep -L '^#pragma once$' "${internal[@]}" | sed 's/^/  /' || true)"

# clang-format puts a function's braces alone in the first column.
fail "functions of more than 70 lines:" "$(awk '
    FNR == 1 { start = 0 }
    /^\{/ { start = FNR }
    /^\}/ { if (start && FNR - start + 1 > 70) print "  " FILENAME ":" start ": " FNR - start + 1
            start = 0 }' "${sources[@]}")"

# Public structures are options, statistics and plans. A nested struct groups fields that are about
# one thing: it is one field of at most 25, and its own are among at most 40, so that groups do not
# hide a struct that is about everything.
mapfile -t inner < <(printf '%s\n' "${sources[@]}" | grep -vE '^(include|tests|bench/programs)/')
fail "structs of more than 25 fields, or of 40 with those of nested structs (group or divide them):" "$(awk '
    /^(typedef )?struct [a-z_0-9]+ \{/ { on = 1; start = FNR; n = all = depth = comment = 0; text = ""; next }
    on && /^\}/ { if (n > 25 || all > 40) print "  " FILENAME ":" start ": " n ", " all
                  on = 0 }
    !on { next }
    comment { if (!sub(/.*\*\//, "")) next; comment = 0 }
    { gsub(/\/\*([^*]|\*[^\/])*\*\//, ""); if (sub(/\/\*.*/, "")) comment = 1 }
    /^ +(struct|union|enum).*\{/ { depth++; next }
    depth && /^ +\}/ { n += --depth == 0; next }
    { text = text $0 }
    text ~ /; *$/ { while (gsub(/\([^()]*\)/, "", text)) {}; k = gsub(/[,;]/, "", text); text = ""
                    all += k; if (!depth) n += k }' \
    "${inner[@]}")"

# Blocks ask for their own buffers; what is of one architecture is not the workspace's.
fail "a workspace of more than 20 fields, nested ones counted:" "$(awk '
    /^typedef struct workspace \{/ { on = 1; next }
    on && /^\}/ { if (n > 20) print "  " FILENAME ": " n
                  exit }
    !on { next }
    comment { if (!sub(/.*\*\//, "")) next; comment = 0 }
    { gsub(/\/\*([^*]|\*[^\/])*\*\//, ""); if (sub(/\/\*.*/, "")) comment = 1; n += gsub(/[,;]/, "") }' \
    src/model/workspace.h)"

# Options of the API have no dashes, and the command's flags are the command's business.
fail "the library names a flag or a subcommand of the command (use FAIL_HINT):" \
    "$(grep -nE '"([^"]*[ (])?(--?[a-z]|drey (run|plan|prepare|inspect|bench|tokenize|perplexity)\b)[^"]*"' \
        -r common src tune bench train --include='*.[ch]' --exclude-dir=programs || true)"

fail "lines that end in blanks:" "$(grep -nE '[[:blank:]]+$' "${sources[@]}" "${scripts[@]}" || true)"

# It reads no further than its match, and under pipefail the command that still writes then fails.
fail "a command's output goes through a pipe into grep -q (write a file first, or grep -q ... <<<\"\$(...)\"):" \
    "$(awk 'FNR == 1 { piped = "" }
        (piped $0) ~ /[^|]\|[[:blank:]]*[ef]?grep ([^|]* )?(-[a-zA-Z]*q|--quiet)/ && !/^ *#/ { print "  " FILENAME ":" FNR }
        { piped = /[^|]\|[[:blank:]]*\\?$/ ? " |" : "" }' "${scripts[@]}")"

has() { # TOOL: is it here? Another clang-format than 14 would have it another way
    command -v "$1" >/dev/null || {
        echo "not run: $1 is not installed (scripts/install-deps.sh --tests installs it)"
        return 1
    }
}
! has clang-format-14 || fail "not as clang-format would have it:" "$(printf '%s\0' "${sources[@]}" |
    { xargs -0 -P "$(nproc)" -n 25 clang-format-14 --dry-run 2>&1 || true; } |
    grep -E '^[^ ]+:[0-9]+:' | head -n 20)"
! has shellcheck || fail "shellcheck says:" "$(printf '%s\0' "${scripts[@]}" |
    xargs -0 -P "$(nproc)" -n 5 shellcheck --format=gcc || true)"
! has mandoc || fail "mandoc says:" "$(awk -f cmake/options.awk -v form=mdoc docs/options/commands.md \
    docs/options/[!c]*.md docs/reference/drey.1.in | mandoc -T lint -W warning || true)"

# Plain English: CONTRIBUTING.md, Words.
documents=(docs README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md)
code=(include common src tune bench train serve cli examples tests scripts test.sh demo.sh .ci)
fail "words that CONTRIBUTING.md has others for:" \
    "$(python3 tests/prose.py words "${documents[@]}" "${code[@]}" cmake CMakeLists.txt)"
fail "comments of more than 100 columns, documents of more than 120:" \
    "$(python3 tests/prose.py columns "${documents[@]}" "${code[@]}")"
fail "files that are named and are gone:" \
    "$(python3 tests/prose.py names "${documents[@]}" "${code[@]}")"
fail "comments on functions and fields that do not begin with a verb or the noun that names their result:" \
    "$(python3 tests/prose.py starts "${code[@]}" python)"
fail "names that are gestures (go_on, tell, told, X_A_Y): continue, report, X_PER_Y:" \
    "$(python3 tests/prose.py identifiers "${code[@]}")"
fail "links to files or headings that are gone:" "$(python3 tests/prose.py links "${documents[@]}")"

if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    fail "paths of one machine:" "$(git grep -nIE '/(work|root|home)/[a-z.]' -- . ':!tests/style.sh' |
        cut -c1-160 || true)"
    fail "files of more than 1 MiB:" "$(git ls-files -z | xargs -0 -r du -k --apparent-size |
        awk '$1 > 1024 { print "  " $0 }')"
else
    echo "not run: this is not a git checkout, so what is committed cannot be listed"
fi
exit $failed
