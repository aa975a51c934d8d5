#!/usr/bin/env bash
# Prints the mirror that this machine's apt uses for Debian 12, for debootstrap; nothing where apt
# names none, and debootstrap has its own.
set -euo pipefail
# shellcheck disable=SC2016 # $(...) is apt's notation
apt-get indextargets --format '$(CODENAME) $(ORIGIN) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk '$1 == "bookworm" && $2 == "Debian" && !found++ { print $3 }' || true
