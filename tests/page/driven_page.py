"""Helpers of the page's tests: a server that gives it out and answers when the test says so, and
what is pressed, typed and seen."""
import http.server
import json
import os
import queue
import select
import threading

import chromium


def text_of(name):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), encoding="utf-8") as f:
        return f.read()


METRICS = text_of("page_metrics.txt")


class Turn:
    """One request for an answer, and what is to be sent for it."""

    def __init__(self, request, headers, path="/"):
        self.request, self.headers, self.path = request, headers, path
        self.n_sent = 0  # bytes of its body
        self.out = queue.Queue()
        self.gone = threading.Event()

    def begin(self):
        self.out.put("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n:\n\n")
        self.event(choices=[{"index": 0, "delta": {"role": "assistant", "content": None}}])
        return self

    def begin_rest(self):
        self.out.put("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n\n")
        return self

    def event(self, **keys):
        self.out.put(f"data: {json.dumps(keys)}\n\n")

    def say(self, text=None, provisional=None, finish=None, delta=None, **keys):
        delta = delta or ({} if text is None else {"content": text})
        drey = {} if provisional is None else {"drey": {"provisional": provisional}}
        self.event(choices=[{"index": 0, "delta": delta, "finish_reason": finish}], **drey, **keys)

    def end(self, tokens=7, finish="stop"):
        self.say(finish=finish)
        self.event(choices=[], usage={"prompt_tokens": 40, "completion_tokens": tokens,
                                      "prompt_tokens_details": {"cached_tokens": 30}},
                   timings={"predicted_n": tokens, "predicted_per_second": 0.52, "predicted_ms": 10000},
                   drey={"ceiling_tokens_per_s": 0.61, "disk_bytes_per_s": 1.2e9, "read_bytes": 1.02e10,
                         "stall_share": 0.71, "drafted": 40, "accepted": 30})
        self.out.put("data: [DONE]\n\n")
        self.out.put(None)

    def refuse(self, status, message, *headers):
        """message: a sentence, or the whole error."""
        error = message if isinstance(message, dict) else {"code": status, "message": message, "type": "x"}
        body = json.dumps({"error": error})
        self.out.put("\r\n".join([f"HTTP/1.1 {status} x", *headers, "Content-Type: application/json",
                                  f"Content-Length: {len(body)}", "Connection: close", "", body]))
        self.out.put(None)


class Stub(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, page, policy):
        self.page, self.policy = page, policy
        self.turns = queue.Queue()
        self.counted = 0
        self.looks = 1  # at the metrics, until a pass ends
        self.keeps_streams = False  # a page may read on
        self.deleted = []  # streams
        self.models = [{"id": "toy-14B", "object": "model", "meta": {"n_params": 14200000000}}]
        self.asked = []  # paths
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def turn(self):
        return self.turns.get(timeout=chromium.PATIENCE_S)


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def give(self, body, kind, status=200, **headers):
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": len(body), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass  # a page that is left asks no more

    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path.startswith("/v1/stream?") and self.server.keeps_streams:
            self.answer(Turn(None, self.headers, self.path))
        elif self.path == "/":
            self.give(self.server.page, "text/html; charset=utf-8",
                      **{"Content-Security-Policy": self.server.policy})
        elif self.path.split("?")[0] == "/metrics":
            self.server.counted += 1
            n = self.server.counted // self.server.looks * self.server.looks
            self.give(METRICS.format(tokens=n, read=2_040_000_000 * n, seconds=2 * n, stall=1.42 * n).encode(), "text/plain")
        elif self.path.split("?")[0] == "/props":
            self.give(b'{"default_generation_settings": {"n_ctx": 4096, "params": {"temperature": 0}}}', "application/json")
        elif self.path == "/v1/models":
            self.give(json.dumps({"object": "list", "data": self.server.models}).encode(), "application/json")
        else:
            self.give(b"{}", "application/json", 404)

    def do_DELETE(self):
        self.server.deleted.append(self.path)
        self.give(b"", "text/plain", 204)

    def do_POST(self):
        self.answer(Turn(json.loads(self.rfile.read(int(self.headers["Content-Length"]))), self.headers))

    def answer(self, turn):
        self.server.turns.put(turn)
        while True:
            try:
                data = turn.out.get(timeout=0.05)
            except queue.Empty:  # has the page hung up?
                if not select.select([self.connection], [], [], 0)[0]:
                    continue
                turn.gone.set()
                break
            if data is None:
                break
            try:
                self.wfile.write(data.encode())
                turn.n_sent += len(data.encode().split(b"\r\n\r\n")[-1])
            except OSError:
                turn.gone.set()
                break
        self.close_connection = True


# ---- What is pressed, typed and seen ----

WATCH = text_of("page_watch.js")


def load(browser, url):
    browser.open(url)
    browser.js(WATCH)


def fresh(browser, url):
    """The page with nothing kept."""
    browser.open(url)
    browser.js("localStorage.clear()")
    load(browser, url)


def click(browser, selector):
    browser.js(f"document.querySelector({json.dumps(selector)}).click()")


def type_text(browser, text):
    browser.js("document.getElementById('text').focus()")
    browser.write(text)


def delete_chat(browser, label="^=Delete"):
    click(browser, f"#chats .tool[aria-label{label}]")
    click(browser, "#delete-dialog button.main")


def ask(browser, stub, text):
    type_text(browser, text)
    browser.press("Enter")
    return stub.turn()


def finish(browser, turn, and_="true", **end):
    """The turn ends, and the page has shown it."""
    turn.end(**end)
    browser.wait(f"idle() && {and_}")


def answered(browser, stub, question, text=None, **end):
    turn = ask(browser, stub, question).begin()
    if text is not None:
        turn.say(text)
    finish(browser, turn, **end)


def is_solid(browser, text):
    browser.wait(f"solid_now() === {json.dumps(text)}", f"solid: {text!r}")


def is_provisional(browser, text):
    browser.wait(f"provisional_now() === {json.dumps(text)}", f"provisional: {text!r}")


def messages(turn):
    return [(m["role"], m["content"]) for m in turn.request["messages"]]
