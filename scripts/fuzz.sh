#!/usr/bin/env bash
# Fuzzes each target of tests/fuzz for a while, beginning with its corpus, under ASan and UBSan.
# What it finds is left in the build folder as TARGET-crash-... (or leak, timeout, oom), and named.
#   fuzz.sh [SECONDS [BUILD_DIR]]
# SECONDS: for each target, default 10. BUILD_DIR: default build-fuzz.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
seconds=${1:-10} build=${2:-$here/build-fuzz}
targets=()
for source in "$here"/tests/fuzz/fuzz_*.c; do
    targets+=("$(basename "$source" .c)")
done
"$here/scripts/build.sh" "$build" "${targets[@]/#/--target=}" -DBUILD_TESTING=ON -DDREY_FUZZ=ON -DCMAKE_C_COMPILER=clang-14 \
    -DCMAKE_BUILD_TYPE=Checked "-DCMAKE_C_FLAGS_CHECKED=-O1 -g"
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
failed=0
for target in "${targets[@]}"; do
    mkdir "$new/$target"
    if "$build/tests/fuzz/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -artifact_prefix="$build/$target-" "$new/$target" "$here/tests/fuzz/corpus/${target#fuzz_}" \
        >"$new/log" 2>&1; then
        echo "$target: $(grep -oE '^Done [0-9]+ runs' "$new/log") in $seconds s, nothing found"
    else
        tail -n 40 "$new/log"
        echo "$target: see above, and $build/$target-*"
        failed=1
    fi
done
exit $failed
