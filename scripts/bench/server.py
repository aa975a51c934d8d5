#!/usr/bin/env python3
"""A server of drey or of llama.cpp for as long as it is needed, on a port that the system chose for
it. As a program it starts a server, asks it once, and ends it, all in the caller's cgroup; what it
answered goes to standard output as JSON:
    server.py REQUEST.json SERVER ARGUMENT...
The request has "path" and "body"."""
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from sides import Stop


@contextlib.contextmanager
def running(command, env=None):
    """Starts it, yields its address, http://127.0.0.1:PORT, once it answers, and ends it.

    Port 0: a port that is looked for beforehand may be another's by the time it is opened. What the
    server took it says in its log."""
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        server = subprocess.Popen([*command, "--host", "127.0.0.1", "--port", "0"], env=env,
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield address_of(server, log)
        finally:
            server.terminate()
            server.wait()


def address_of(server, log):
    while server.poll() is None:
        log.seek(0)
        said = re.search(r"(?:listening on |^)(http://127\.0\.0\.1:\d+)\b", log.read(), re.M)
        address = said[1] if said else listening(server.pid)
        if address and answers(address):
            return address
        time.sleep(0.05)
    log.seek(0)
    raise Stop("the server ended while it was loading: " + log.read()[-2000:])


def listening(pid):
    """Address of a server that says nothing of its port; None: it listens nowhere yet."""
    try:
        files = f"/proc/{pid}/fd"
        open_files = {os.readlink(f"{files}/{name}") for name in os.listdir(files)}
        with open(f"/proc/{pid}/net/tcp") as f:
            lines = [line.split() for line in f][1:]
    except OSError:  # it has ended, or closed a file meanwhile
        return None
    return next((f"http://127.0.0.1:{int(of[1].split(':')[1], 16)}" for of in lines
                 if of[3] == "0A" and f"socket:[{of[9]}]" in open_files), None)


def answers(address):
    try:
        with urllib.request.urlopen(f"{address}/health", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def ask(address, path, body=None):
    """Returns what the server answers, as JSON."""
    request = urllib.request.Request(address + path, json.dumps(body).encode() if body else None,
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


def stream(address, path, body):
    """Its events, each with the time at which it came."""
    request = urllib.request.Request(address + path, json.dumps({**body, "stream": True}).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        for line in answer:
            if line.startswith(b"data:") and b"[DONE]" not in line:
                yield time.monotonic(), json.loads(line[5:])


def main():
    with open(sys.argv[1]) as f:
        request = json.load(f)
    try:
        with running(sys.argv[2:]) as address:
            print(json.dumps(ask(address, request["path"], request["body"])))
    except Stop as stop:
        sys.exit(f"server: {stop}")


if __name__ == "__main__":
    main()
