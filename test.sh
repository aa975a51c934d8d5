#!/usr/bin/env bash
# Runs every test: installs what is missing, builds, fetches the small real model (98 MB), and ends
# with ctest's own summary.
#   ./test.sh [--fast] [--optional] [--changed [COMMIT]] [--compiler gcc|clang-14] [--sanitize LIST]
#             [--werror] [--only REGEX] [--label LABEL] [--build-dir DIR]
#     --fast       the tests that carry the label fast: unit tests and checks of the sources. They
#                  end within a minute on two cores, need no model and download nothing
#     --optional   the tests with parts that run only where shells, a browser, an OpenCL device and
#                  the like are installed (CONTRIBUTING.md lists it): installs all of it (800 MB),
#                  and what still does not run has to be due to the processor or its devices.
#                  ./test.sh alone runs all tests, but for those parts of them
#     --changed    the tests that what changed since COMMIT (default HEAD) can touch
#     --sanitize   as -fsanitize= takes it: address,undefined or thread
#     --werror     warnings of the compiler are errors
#     --only       the tests whose names match; default all
#     --label      the tests that carry it: a folder of the library (tree) or of tests (cli), or
#                  threads for those that start threads
#     --build-dir  default build, or build-COMPILER-SANITIZERS when one of the two is given
# Models: $DREY_MODELS, else the user's cache directory; tests that want the large pair use it when
# it is there. A test, or a part of one, that cannot run here says why; the last line counts them.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
compiler='' sanitize='' only='' label='' build='' changed='' werror=OFF
while [ $# -gt 0 ]; do
    case $1 in
    --fast | --optional)
        label=${1#--}
        shift
        continue
        ;;
    --changed)
        changed=HEAD
        if [[ ${2-} =~ ^[^-] ]]; then
            changed=$2
            shift
        fi
        shift
        continue
        ;;
    --werror)
        werror=ON
        shift
        continue
        ;;
    --compiler) compiler=${2:?} ;;
    --sanitize) sanitize=${2:?} ;;
    --only) only=${2:?} ;;
    --label) label=${2:?} ;;
    --build-dir) build=${2:?} ;;
    *)
        sed -n '2,20s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
    shift 2
done
suffix=${compiler:+-$compiler}${sanitize:+-${sanitize//,/-}}
build=${build:-$here/build$suffix}

export DREY_MODELS=${DREY_MODELS:-${XDG_CACHE_HOME:-$HOME/.cache}/drey/models}
optional=''
[ "$label" != optional ] || optional=yes
if [ "$label" = fast ]; then
    "$here/scripts/install-deps.sh" --tests --check >&2 ||
        echo "test: the fast tests need few of these; a part that cannot run without one says so" >&2
else
    "$here/scripts/install-deps.sh" --tests ${optional:+--optional}
    "$here/scripts/get-models.sh" smol ||
        echo "test: the small model could not be fetched: the tests that need it will be skipped" >&2
fi

settings=(-DBUILD_TESTING=ON "-DDREY_WERROR=$werror" "-DCMAKE_C_COMPILER=${compiler:-gcc}" "-DDREY_SANITIZE=$sanitize")
if [ -n "$sanitize" ]; then # with the library's asserts as well, and without what CUDA's compiler makes
    settings+=(-DCMAKE_BUILD_TYPE=Checked "-DCMAKE_C_FLAGS_CHECKED=-O2 -g1" -DDREY_NVCC=)
fi
"$here/scripts/build.sh" "$build" "${settings[@]}"

if [ -n "$optional" ]; then # for this run alone
    PATH=$("$here/tests/python/packages.sh" "$build/python"):$PATH
    export PATH
fi

if [ -n "$changed" ]; then
    touched=$("$here/tests/build_graph.py" "$build" changed "$changed")
    if [ "$touched" != all ]; then
        touched=$(grep -E -- "$only" <<<"$touched") || {
            echo "test: nothing has changed since $changed that a test reads"
            exit 0
        }
        only="^($(paste -sd '|' <<<"$touched"))\$"
    fi
fi

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}

# ctest -V prefixes each test's output with its number; a failed test's output is shown whole, of
# the others what they say about not having run something. What did not run is counted at the end.
show() {
    awk -v strict="$optional" -v fast="$([ "$label" != fast ] || echo yes)" '
        /^test [0-9]+$/ || /^ *Start +[0-9]+:/ || /^$/ { next }
        /^(UpdateCTest|Parse Config|Constructing|Done constructing|Updating test list)/ { next }
        /^(Internal ctest|Added [0-9]+ tests|Checking test dependency)/ { next }
        match($0, /^[0-9]+: /) {
            n = substr($0, 1, RLENGTH - 2); text = substr($0, RLENGTH + 1)
            all[n] = all[n] "    " text "\n"
            if (text ~ /skipped: |not run: /) {
                some[n] = some[n] "    " text "\n"
                if (text ~ /skipped: /) n_tests++; else n_parts++
                if (strict && text !~ /processor|tier|device|sanitizer/) n_strict++
            }
            next
        }
        match($0, /^ *[0-9]+\/[0-9]+ Test +#[0-9]+:/) {
            n = substr($0, 1, RLENGTH - 1); sub(/.*#/, "", n)
            print
            printf "%s", ($0 ~ /Passed +[0-9]/ || $0 ~ /\*\*\*Skipped/) ? some[n] : all[n]
            delete all[n]; delete some[n]; fflush(); next
        }
        /^(100|[0-9]+)% tests passed/ { print "" }
        { print; fflush() }
        END {
            if (n_tests + n_parts)
                printf "not run here: %d tests and %d parts of tests, each with its reason above\n", n_tests, n_parts
            else
                print "not run here: nothing"
            if (n_tests + n_parts && !strict && !fast)
                print "./test.sh --optional installs what else they use (800 MB), and runs them"
            if (n_strict)
                printf "of these, %d for another reason than the processor and its devices\n", n_strict
            exit n_strict > 0
        }'
}
# Three at once for two cores: servers, ranks and slow disks mostly wait.
status=0
ctest --test-dir "$build" -V --timeout 1800 --no-tests=error -j $((($(nproc) * 3 + 1) / 2)) \
    ${only:+-R "$only"} ${label:+-L "^$label\$"} </dev/null 2>&1 | show || status=$?
exit "$status"
