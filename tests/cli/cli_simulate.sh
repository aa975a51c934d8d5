#!/usr/bin/env bash
# drey tune --simulate: the machine of Ghidorah's paper comes out as published, and a file that is
# none is told in one sentence.
#   cli_simulate.sh DREY
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
drey=${1:?usage: cli_simulate.sh DREY}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
wrong() {
    echo "cli_simulate: $*"
    failed=1
}
machine=docs/lab/machines/jetson-nx.json

"$drey" tune --simulate "$machine" --json "$tmp/out.json" >"$tmp/out" || wrong "simulate"
python3 - "$tmp/out.json" "$machine" <<'END' || failed=1
import json, sys
out, machine = (json.load(open(path)) for path in sys.argv[1:])
claims = out["published"]
bad = [c for c in claims if not 0.9 <= c["simulated"] / c["published"] <= 1.1]
bad += [c for c in claims if "best width" in c["what"] and c["simulated"] != c["published"]]
for claim in bad:
    print("cli_simulate: not as published:", claim)
for attention in out["attention"]:
    if attention["dynamic_s"] > attention["static_s"]:
        bad.append(attention)
        print("cli_simulate: the searched boundary is the slower one:", attention)
# Fitted parameters are those that the file names, and each is said.
text = open(sys.argv[1][:-len(".json")]).read()
for fit in machine["fitted"]:
    if fit["name"] not in text:
        bad.append(fit)
        print("cli_simulate: a fitted parameter is not told:", fit)
sys.exit(len(claims) != 12 or bool(bad))
END
"$drey" tune --simulate "$machine" --json - 2>"$tmp/err" | cmp -s - "$tmp/out.json" ||
    wrong "--json - differs from the file"

set_key() { # KEY JSON: a copy of the machine with this in the place of KEY; "": without it
    python3 -c 'import json, sys
machine, out, key, value = sys.argv[1:]
root = json.load(open(machine))
at = root
parts = key.split("/")
for part in parts[:-1]:
    at = at[int(part) if part.isdigit() else part]
last = int(parts[-1]) if parts[-1].isdigit() else parts[-1]
if value:
    at[last] = json.loads(value)
else:
    del at[last]
json.dump(root, open(out, "w"))' "$machine" "$tmp/bad.json" "$@"
}
refused() { # WORDS
    if "$drey" tune --simulate "$tmp/bad.json" >"$tmp/out" 2>"$tmp/err"; then
        wrong "taken: $1"
    fi
    if [ "$(wc -l <"$tmp/err")" != 1 ] || ! grep -qF -- "$1" "$tmp/err"; then
        wrong "not \"$1\" but $(cat "$tmp/err")"
    fi
    [ ! -s "$tmp/out" ] || wrong "something was shown before: $1"
}
set_key name "" && refused '"name" of the simulated machine'
set_key widths '[1, 2.5]' && refused '"widths" of the simulated machine'
set_key widths '[1, 2, 4, 8, 32, 16, 64]' && refused 'ascend'
set_key context '-1' && refused '"context"'
set_key units '[]' && refused '1 to 4 units'
set_key units/1/linear '[1, 2]' && refused '"linear" of the simulated machine should be a list'
set_key units/1/dense/3 0 && refused 'unit 2'
set_key units/0/contention '"much"' && refused 'unit 1'
set_key acceptance '{}' && refused '"acceptance"'
set_key acceptance/MBPP/2 0.5 && refused 'from 1 on'
set_key all_reduce_row '' && refused '0 or more'
set_key published/0/set '"another"' && refused '"published"'
set_key published/8/from_width 17 && refused '"published"'
set_key fitted/0/value '"?"' && refused '"fitted"'
set_key contexts '[64, 0.5]' && refused '"contexts" of the simulated machine should be a list'
set_key contexts '"all"' && refused '"contexts"'
set_key attention_width 48 && refused '"attention_width"'
head -c 300 "$machine" >"$tmp/bad.json" && refused 'is no JSON'
: >"$tmp/bad.json" && refused 'is no JSON'
rm "$tmp/bad.json" && refused 'cannot open'
head -c 1100000 /dev/zero >"$tmp/bad.json" && refused 'has more than'
set_key name '"two\nlines \u001b[31m"'
"$drey" tune --simulate "$tmp/bad.json" >"$tmp/out" || wrong "an odd name"
head -n 1 "$tmp/out" | grep -qF 'two?lines ?[31m' || wrong "the name steers the terminal"
exit $failed
