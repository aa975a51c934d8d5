#!/usr/bin/env python3
"""The man page names what a file of JSON holds.
    man_keys.py SECTION FILE.json...
Every key of the files, also of objects and lists within, has to stand as .Cm in that section of
docs/reference/drey.1.in (Statistics, Plans), but for those of `machine`, which explain
themselves."""
import json
import os
import re
import sys

section, *files = sys.argv[1:]
page = open(os.path.join(os.path.dirname(__file__), "../../docs/reference/drey.1.in")).read()
text = re.split(r"^\.S[sh] ", page.split("\n.Ss %s\n" % section)[1], flags=re.M)[0]
named = set()
for line in re.findall(r"^\.(?:It |Pq )?Cm (.*)$", text, flags=re.M):
    named.update(line.split())


def keys_of(value):
    if isinstance(value, dict):
        inner = (keys_of(inner) for key, inner in value.items() if key != "machine")
        return set(value).union(*inner)
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


found = set().union(*(keys_of(json.load(open(path))) for path in files))
if not found or not found <= named:
    sys.exit("docs/reference/drey.1.in, %s: does not name %s" % (section, ", ".join(sorted(found - named))))
