#!/usr/bin/env python3
"""Starts a llama-server, asks it once, and ends it: what it answered goes to standard output as
JSON.
    serve_once.py REQUEST.json SERVER ARGUMENT...
The request has "path" and "body". Server and this program run in the caller's cgroup."""
import json
import sys

from server import ask, running
from sides import Stop


def main():
    with open(sys.argv[1]) as f:
        request = json.load(f)
    try:
        with running(sys.argv[2:]) as address:
            print(json.dumps(ask(address, request["path"], request["body"])))
    except Stop as stop:
        sys.exit(f"serve_once: {stop}")


if __name__ == "__main__":
    main()
