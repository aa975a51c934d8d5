#!/usr/bin/env bash
# Two ranks in two network namespaces, over a link with a delay of 1 ms in each direction and 1 % of
# lost packets: the text is that of one process, and a link that is cut ends the run with a sentence
# that names the rank.
#   check-ranks.sh DREY MODEL.gguf
#   check-ranks.sh --run DELAY_MS LOSS COMMAND...      on both ranks, for measurements
# Needs root, iproute2, python3, mpirun and libdrey-mpi. The link is slow-link.py, next to this
# file. MPI finds the other namespace by a launch agent in place of ssh.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "$(id -u)" != 0 ]; then
    echo "check-ranks: run this as root: it makes network namespaces" >&2
    exit 1
fi
tmp=$(mktemp -d)
one="drey$$"a two="drey$$"b link=
end() {
    [ -z "$link" ] || kill "$link" 2>/dev/null || true
    for ns in "$one" "$two"; do
        ip netns pids "$ns" | xargs -r kill -9 || true
    done
    wait 2>/dev/null || true
    ip netns del "$one" 2>/dev/null || true
    ip netns del "$two" 2>/dev/null || true
    rm -rf "$tmp"
}
trap end EXIT
for ns in "$one" "$two"; do
    ip netns add "$ns"
    ip -n "$ns" link set lo up
done

# mpirun calls this with a host and a command. Each has its own host name: MPI knows machines by it.
cat >"$tmp/agent" <<END
#!/bin/sh
shift
exec ip netns exec $two unshare --uts sh -c 'hostname two; eval "\$*"' sh "\$@"
END
chmod +x "$tmp/agent"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent=$tmp/agent OMPI_MCA_btl=tcp,self
export OMPI_MCA_btl_tcp_if_include=10.77.0.0/24 OMPI_MCA_oob_tcp_if_include=10.77.0.0/24
# So that its daemons notice within seconds that the other one is gone.
export OMPI_MCA_oob_tcp_keepalive_time=5 OMPI_MCA_oob_tcp_keepalive_intvl=1 OMPI_MCA_oob_tcp_keepalive_probes=3
on_two=(ip netns exec "$one" unshare --uts sh -c 'hostname one; exec "$@"' sh
    mpirun -n 2 --host "10.77.0.1,10.77.0.2")

lay() { # DELAY_MS LOSS
    python3 "$here/slow-link.py" "$one" 10.77.0.1/24 "$two" 10.77.0.2/24 --delay-ms "$1" --loss "$2" >"$tmp/link" &
    link=$!
    for _ in $(seq 200); do
        [ ! -s "$tmp/link" ] || return 0
        sleep 0.05
    done
    echo "check-ranks: no link between the namespaces" >&2
    exit 1
}

if [ "$1" = --run ]; then
    lay "$2" "$3"
    shift 3
    "${on_two[@]}" "$@"
    exit
fi

drey=$1 model=$2 wait_s=5
text=("$drey" run -m "$model" -d none --ignore-eos -p "The sky is blue because")
lay 1 0.01
"${text[@]}" -n 32 -q >"$tmp/expected"
timeout 300 "${on_two[@]}" "${text[@]}" -n 32 >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/err" >&2; exit 1; }
cmp "$tmp/expected" "$tmp/out"
grep -qE "^rank 0 on one: " "$tmp/err" && grep -qE "^rank 1 on two: " "$tmp/err"
echo "check-ranks: over a link of 1 ms that loses 1 % the text is the same"

# Cut in the middle of a text.
rm "$tmp/out"
timeout 300 "${on_two[@]}" "${text[@]}" -n 4000 -c 4100 --rank-wait $wait_s >"$tmp/out" 2>"$tmp/err" &
run=$!
until [ -s "$tmp/out" ]; do
    kill -0 $run
    sleep 0.05
done
kill -USR1 "$link"
begin=$(date +%s)
said="^drey: error: rank 1 \(two\) has said nothing for $wait_s seconds"
until grep -qE "$said" "$tmp/err"; do
    if [ $(($(date +%s) - begin)) -gt $((wait_s + 20)) ]; then
        cat "$tmp/err" >&2
        echo "check-ranks: no rank is named $((wait_s + 20)) s after the link was cut" >&2
        exit 1
    fi
    sleep 0.1
done
echo "check-ranks: $(($(date +%s) - begin)) s after the link was cut: $(grep -E "$said" "$tmp/err")"

# Rank 0 is gone. A rank on the other machine ends with MPI's daemon there, which notices by its
# keepalives.
for _ in $(seq 600); do
    left=$(ip netns pids "$two")
    [ -n "$left" ] || break
    sleep 0.1
done
if [ -n "$left" ]; then
    echo "check-ranks: a minute after the link was cut, rank 1 still waits" >&2
    exit 1
fi
echo "check-ranks: $(($(date +%s) - begin)) s after the link was cut rank 1 has ended as well"
