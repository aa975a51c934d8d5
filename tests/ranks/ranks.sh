#!/usr/bin/env bash
# What tests of the command under mpirun begin with, instead of shell.sh: ends the test where there
# is no MPI.
# shellcheck disable=SC2034 # for the scripts that source it
. "$(dirname "${BASH_SOURCE[0]}")/../cli/shell.sh"
if ! command -v mpirun >/dev/null || ! compgen -G "$(dirname "$drey")/../libdrey-mpi.so.*" >/dev/null; then
    echo "$test_name: skipped: no mpirun here, or no MPI headers when drey was built (openmpi-bin, libopenmpi-dev)"
    exit 77
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Two tests at once make and remove one folder of Open MPI in /tmp, and either may then fail.
export OMPI_MCA_orte_tmpdir_base=$tmp PRTE_MCA_prte_tmpdir_base=$tmp
# A sanitizer's dlopen does not look where drey's does.
LD_LIBRARY_PATH=$(realpath "$(dirname "$drey")/..")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
export ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" # MPI leaks; the last word counts
ranks=(timeout 120 mpirun --oversubscribe -n)
