#!/usr/bin/env bash
# The units of systemd that the Debian package has: systemd reads them without complaint, and calls
# the service a safe one.
#   service_units.sh DREY
set -euo pipefail
drey=$(realpath "${1:?usage: service_units.sh DREY}")
cd "$(dirname "${BASH_SOURCE[0]}")/../scripts/package/debian"
if ! command -v systemd-analyze >/dev/null; then
    echo "skipped: systemd-analyze is not installed (Debian: systemd)"
    exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cp drey.service drey.socket "$tmp"
ln -s "$drey" "$tmp/drey" # whose own path may have blanks
sed -i "s|^ExecStart=/usr/bin/drey |ExecStart=$tmp/drey |" "$tmp/drey.service"
failed=0
said=$(systemd-analyze verify --man=no "$tmp"/drey.{service,socket} 2>&1) || failed=1
if [ $failed = 1 ] || [ -n "$said" ]; then
    echo "service_units: systemd-analyze verify says: $said"
    failed=1
fi
# A number from 0, safe, to 100; systemd's own notion, so a setting that is lost is seen here.
systemd-analyze security --offline=true --threshold=10 "$tmp/drey.service" >"$tmp/security" 2>&1 || {
    echo "service_units: systemd-analyze security says:"
    grep -v '^✓' "$tmp/security" || true
    failed=1
}
exit $failed
