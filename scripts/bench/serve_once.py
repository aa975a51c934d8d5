#!/usr/bin/env python3
"""Starts a llama-server, asks it once, and ends it: what it answered goes to standard output as JSON.
    serve_once.py REQUEST.json SERVER ARGUMENT...
The request has "path" and "body". Server and this program run in the caller's cgroup."""
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request


def wait_for(server, url):
    while server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.1)
    sys.exit("serve_once: the server ended while it was loading")


def main():
    with open(sys.argv[1]) as f:
        request = json.load(f)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    server = subprocess.Popen([*sys.argv[2:], "--host", "127.0.0.1", "--port", port],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        wait_for(server, f"http://127.0.0.1:{port}/health")
        ask = urllib.request.Request(f"http://127.0.0.1:{port}{request['path']}",
                                     json.dumps(request["body"]).encode(),
                                     {"Content-Type": "application/json"})
        with urllib.request.urlopen(ask) as answer:
            print(answer.read().decode())
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
