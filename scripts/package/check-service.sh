#!/usr/bin/env bash
# The service of the Debian package on a booted system: off after the installation, started
# by the first client, without rights and network, ended by a stop.
#   check-service.sh boot ROOT   boots the system in that folder, where the package is installed
#   check-service.sh             inside of it
# /check of that system has this script and toy.gguf.
set -euo pipefail
if [ "${1-}" = boot ]; then
    root=${2:?a folder}
    if ! command -v systemd-nspawn >/dev/null; then
        echo "not run: the service under systemd, for which systemd-nspawn is not installed (systemd-container)"
        exit 0
    fi
    cp "$root/check/toy.gguf" "$root/var/lib/drey/models/"
    mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
    # The system ends with the script, and nspawn with the system's exit status.
    cat >"$root/etc/systemd/system/check.service" <<'UNIT'
[Unit]
Description=Check of drey.service
SuccessAction=exit
FailureAction=exit
[Service]
Type=oneshot
ExecStart=/check/check-service.sh
TimeoutStartSec=5min
StandardOutput=file:/check/service.log
StandardError=file:/check/service.log
UNIT
    ln -sf ../check.service "$root/etc/systemd/system/multi-user.target.wants/check.service"
    rm -f "$root/check/service.log"
    code=0
    timeout 600 systemd-nspawn -q -D "$root" -M "drey-check-$$" --boot --register=no --keep-unit --private-network \
        systemd.unit=multi-user.target </dev/null >"$root/check/boot.log" 2>&1 || code=$?
    cat "$root/check/service.log" 2>/dev/null || tail -n 20 "$root/check/boot.log"
    exit $code
fi

say() { echo "check-service: $*"; }
wrong() {
    say "WRONG: $*"
    systemctl status --no-pager -l drey.socket drey.service || true
    journalctl --no-pager -u drey.service | tail -n 20
    exit 1
}
ask() { # METHOD PATH [BODY]: the answer, over a connection of its own
    exec 3<>/dev/tcp/127.0.0.1/8080
    printf '%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s' "$1" "$2" "${#3}" "$3" >&3
    cat <&3
    exec 3>&-
}
property() { systemctl show -P "$1" drey.service; }

for unit in drey.socket drey.service; do
    state="$(systemctl is-enabled $unit || true) $(systemctl is-active $unit || true)"
    [ "$state" = "disabled inactive" ] || wrong "$unit is $state after the installation"
done
systemctl enable -q --now drey.socket
[ "$(systemctl is-active drey.service || true)" = inactive ] || wrong "the server runs before it is asked"
ask POST /v1/completions '{"prompt": "A text begins", "max_tokens": 24, "ignore_eos": true}' >/run/answer || true
grep -q '"text":' /run/answer || wrong "no text: $(cat /run/answer)"
systemctl is-active -q drey.service || wrong "the server is not active"
pid=$(property MainPID)
[ "$(awk '$1 == "Uid:" { print $2 }' "/proc/$pid/status")" != 0 ] || wrong "it runs as root"
[ "$(awk '$1 == "CapEff:" { print $2 }' "/proc/$pid/status")" = 0000000000000000 ] || wrong "it has capabilities"
[ "$(readlink "/proc/$pid/ns/net")" != "$(readlink /proc/self/ns/net)" ] || wrong "it has the machine's network"
[ "$(property MemoryMax)" != infinity ] || wrong "its memory has no limit"
# The limit is the budget.
systemctl stop drey.service 2>/dev/null # which says that the socket may start it again
[ "$(property Result)" = success ] || wrong "its end: $(property Result)"
systemctl set-property drey.service MemoryMax=100M
ask POST /v1/completions '{"prompt": "A text begins", "max_tokens": 4, "ignore_eos": true}' >/run/answer || true
grep -q '"text":' /run/answer || wrong "no text in 100M: $(cat /run/answer)"
ask GET '/metrics?model=toy' '' >/run/answer || true
budget=$(awk '$1 == "drey:budget_limit_bytes" { printf "%d", $2 }' /run/answer)
if [ "$(property MemoryCurrent)" = "[not set]" ]; then
    echo "not run: MemoryMax= as the budget, for this system has no control of memory"
elif [ "${budget:-0}" -lt 50000000 ] || [ "$budget" -gt $((100 << 20)) ]; then
    wrong "the budget in 100M is ${budget:-none}"
fi
systemctl stop drey.socket drey.service
[ "$(property Result)" = success ] || wrong "its end: $(property Result)"
say "$(systemctl --version | head -n 1): ok"
