#!/usr/bin/env python3
"""Starts a llama-server, asks it once, and ends it: what it answered goes to standard output as JSON.
    serve_once.py REQUEST.json SERVER ARGUMENT...
The request has "path" and "body". Server and this program run in the caller's cgroup."""
import json
import sys
import urllib.request

from llama_server import llama_server
from sides import Stop


def main():
    with open(sys.argv[1]) as f:
        request = json.load(f)
    try:
        with llama_server(sys.argv[2:]) as address:
            ask = urllib.request.Request(f"{address}{request['path']}",
                                         json.dumps(request["body"]).encode(),
                                         {"Content-Type": "application/json"})
            with urllib.request.urlopen(ask) as answer:
                print(answer.read().decode())
    except Stop as stop:
        sys.exit(f"serve_once: {stop}")


if __name__ == "__main__":
    main()
