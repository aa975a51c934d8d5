#!/usr/bin/env bash
# The page's readers in node, where there is one.
#   page_readers.sh
command -v node >/dev/null || { echo "skipped: node is not installed (Debian: nodejs)"; exit 77; }
exec node "$(dirname "${BASH_SOURCE[0]}")/page_readers.js"
