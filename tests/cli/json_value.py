#!/usr/bin/env python3
"""Values of a JSON file for tests that are shell scripts.
    json_value.py FILE EXPRESSION...
Prints the value of each expression, which is Python over the file's keys (`whole`: all of it), as
JSON, one per line. One that is false, or that cannot be computed, is reported on standard error,
and the exit code is 1: json_value.py stats.json 'accepted <= drafted' is a test."""
import json
import sys

with open(sys.argv[1]) as file:
    whole = json.load(file)
names = {**whole, "whole": whole} if isinstance(whole, dict) else {"whole": whole}
failed = False
for expression in sys.argv[2:]:
    try:
        value = eval(" ".join(expression.split()), dict(names))
    except Exception as error:
        value, expression = False, "%s: %r" % (expression, error)
    if value is False:
        failed = True
        print("%s: not %s" % (sys.argv[1], expression), file=sys.stderr)
    print(json.dumps(value))
sys.exit(failed)
