#!/usr/bin/env bash
# Writes texts under random faults and cancellations for as long as asked, and shows that nothing
# grows and no text is wrong: see tests/text/soak.c.
#   soak.sh [--minutes N] [--sanitize LIST] [--seed N] [--build-dir DIR]
#     --minutes    how long (60)
#     --sanitize   as -fsanitize= takes it: address,undefined or thread
#     --build-dir  default build-soak, or build-soak-SANITIZERS
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
minutes=60 sanitize='' seed='' build=''
while [ $# -gt 0 ]; do
    case $1 in
    --minutes) minutes=${2:?} ;;
    --sanitize) sanitize=${2:?} ;;
    --seed) seed=${2:?} ;;
    --build-dir) build=${2:?} ;;
    *)
        sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift 2
done
build=${build:-$here/build-soak${sanitize:+-${sanitize//,/-}}}
compiler=gcc
[ -z "$sanitize" ] || compiler=clang-14
"$here/scripts/build.sh" "$build" -DBUILD_TESTING=ON "-DCMAKE_C_COMPILER=$compiler" \
    "-DDREY_SANITIZE=$sanitize"
exec "$build/tests/soak" --seconds $((minutes * 60)) ${seed:+--seed "$seed"}
