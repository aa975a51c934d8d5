#!/usr/bin/env python3
"""A hub of models with faults, for cli_pull.sh.

    faulty_hub.py FOLDER PORT_FILE

Serves FOLDER/OWNER/NAME as Hugging Face does: a list of files, and the files by way of another
path. FOLDER/faults has words, read for each request:

    cut=N       connections break off after N bytes of a file
    tries=N     the next N requests for files are answered with 503
    noparts     parts of files are not given
    nothead     only parts that do not begin at 0 are refused
    stall=S     nothing comes for S seconds after a file's first 1,000 bytes
    wrongsum    the list has another sum
    private     only with the token "secret"
    nolength    no length is said, neither of a file nor of a part
    endless     a reply has 64 MiB more than it says
    endlessrest the same for replies that are no file's beginning
    changes     what follows the beginning is of another version
    elsewhere   files are at another host
    name=PATH   the list has this path for each file, whose bytes any path has; %XX is a byte

FOLDER/log has a line for each request, and how many bytes of an endless one could be sent.
"""
import hashlib
import http.server
import json
import os
import re
import sys
import threading
import time
import urllib.parse

ROOT = sys.argv[1]
lock = threading.Lock()


def faults():
    try:
        with open(f"{ROOT}/faults") as f:
            return dict((w.split("=", 1) + ["1"])[:2] for w in f.read().split())
    except OSError:
        return {}


def take_try():
    """Returns true if one more request has to fail."""
    with lock:
        f = faults()
        n = int(f.get("tries", 0))
        if n > 0:
            f["tries"] = str(n - 1)
            with open(f"{ROOT}/faults", "w") as out:
                out.write(" ".join(f"{k}={v}" for k, v in f.items()))
        return n > 0


class Hub(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *words):
        with lock, open(f"{ROOT}/log", "a") as f:
            f.write(f"{self.path} {self.headers.get('Range', '-')} {self.headers.get('Authorization', '-')}\n")

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path = self.path.split("?")[0]
        if "private" in faults() and not path.startswith("/cdn/") and \
                self.headers.get("Authorization") != "Bearer secret":
            return self.answer(401)
        found = re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/main", path)
        if found:
            return self.list(found.group(1))
        found = re.fullmatch(r"/([^/]+/[^/]+)/resolve/main/(.+)", path)
        if found:
            host = f"http://localhost:{server.server_address[1]}" if "elsewhere" in faults() else ""
            return self.answer(302, Location=f"{host}/cdn/{found.group(1)}/{found.group(2)}")
        if path.startswith("/cdn/"):
            return self.file(f"{ROOT}/{urllib.parse.unquote(path[5:])}")
        return self.answer(404)

    def list(self, model):
        folder, out = f"{ROOT}/{model}", []
        if not os.path.isdir(folder):
            return self.answer(404)
        for name in sorted(os.listdir(folder)):
            with open(f"{folder}/{name}", "rb") as f:
                data = f.read()
            sum_ = hashlib.sha256(data + b"x" * ("wrongsum" in faults())).hexdigest()
            path = urllib.parse.unquote(faults().get("name", "")) or name
            out.append({"type": "file", "path": path, "size": len(data), "lfs": {"oid": sum_, "size": len(data)}})
        return self.answer(200, json.dumps(out).encode(), Content_Type="application/json")

    def file(self, path):
        f = faults()
        if "name" in f:
            path = f"{ROOT}/some/toy-GGUF/toy-Q4_K_M.gguf"
        if not os.path.isfile(path):
            return self.answer(404)
        if take_try():
            return self.answer(503)
        with open(path, "rb") as opened:
            data = opened.read()
        first, last, n = 0, len(data) - 1, len(data)
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        parts = asked and "noparts" not in f and not ("nothead" in f and asked.group(1) != "0")
        if parts:
            first = int(asked.group(1))
            last = min(int(asked.group(2) or last), last)
        body = data[first:last + 1]
        whole = not parts or not asked.group(2)
        endless = "endless" in f or ("endlessrest" in f and whole)
        other = "changes" in f and whole
        self.send_response(206 if parts else 200)
        self.send_header("ETag", f'"{hashlib.md5(data).hexdigest()}{"-2" * other}"')
        if parts:
            self.send_header("Content-Range", f"bytes {first}-{last}/{'*' if 'nolength' in f else n}")
        if "nolength" in f or endless:
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if "nolength" in f or endless:
            self.close_connection = True
            return self.endless(body) if endless else self.wfile.write(body)
        if whole and "stall" in f:
            self.wfile.write(body[:max(1000 - first, 0)])
            self.wfile.flush()
            time.sleep(float(f["stall"]))
            self.close_connection = True
            return None
        if whole and "cut" in f and len(body) > int(f["cut"]):
            self.wfile.write(body[:int(f["cut"])])
            self.close_connection = True
            return None
        self.wfile.write(body)
        return None

    def endless(self, body):
        n, zeros = 0, bytes(1 << 20)
        try:
            self.wfile.write(body)
            while n < 64:
                self.wfile.write(zeros)
                n += 1
        except OSError:
            pass
        with lock, open(f"{ROOT}/log", "a") as f:
            f.write(f"{n} MiB too many\n")

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except OSError:  # who asked has gone
            self.close_connection = True


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
server.daemon_threads = True
with open(sys.argv[2] + ".new", "w") as f:
    f.write(str(server.server_address[1]))
os.rename(sys.argv[2] + ".new", sys.argv[2])
server.serve_forever()
