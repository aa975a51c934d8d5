#!/usr/bin/env bash
# Makes an environment with the packages of Python that single tests use where they are there
# (CONTRIBUTING.md, "What some tests need"), and prints its folder of programs, for PATH.
#   packages.sh FOLDER
set -euo pipefail
folder=${1:?usage: packages.sh FOLDER}
[ -x "$folder/bin/python3" ] || python3 -m venv "$folder"
"$folder/bin/pip" install -q --disable-pip-version-check openai jsonschema >&2
echo "$folder/bin"
