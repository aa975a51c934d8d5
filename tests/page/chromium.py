"""Chromium without a window, driven by its DevTools protocol over a pair of pipes: for tests of
pages, with Python's own library alone."""
import base64
import collections
import fcntl
import json
import os
import selectors
import shutil
import subprocess
import time

NAMES = ("chromium", "chromium-browser", "chromium-headless-shell", "google-chrome")
PATIENCE_S = 120  # of a machine that is busy with something else; nothing is waited for by the clock


def find():
    """The browser's path, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def _high(descriptor):
    """Returns a copy from 10 on: one that is 3 or 4 already would be lost on its way there."""
    high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return high


class Browser:
    """One page, or several. Messages are JSON, each ended by a zero byte: commands go in by
    descriptor 3, answers and events come out by descriptor 4."""

    def __init__(self, folder, width=1100, height=800):
        from_us, self.to_browser = map(_high, os.pipe())
        self.from_browser, to_us = map(_high, os.pipe())
        words = [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--no-first-run", "--disable-extensions", "--disable-background-networking",
                 "--disable-component-update", "--disable-sync", "--disable-default-apps", "--no-proxy-server",
                 f"--user-data-dir={folder}/profile", f"--window-size={width},{height}",
                 "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{from_us} 4>&{to_us} {from_us}<&- {to_us}>&-', "bash", *words],
            pass_fds=(from_us, to_us), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=open(f"{folder}/chromium.log", "w"), env={**os.environ, "HOME": folder})
        os.close(from_us)
        os.close(to_us)
        self.rest, self.n_calls, self.answers = b"", 0, {}
        self.events = collections.deque()
        self.ready = selectors.DefaultSelector()
        self.ready.register(self.from_browser, selectors.EVENT_READ)
        self.new_page()

    def new_page(self):
        """A page next to the others, which is the one that is driven from now on; its session, to
        come back to it."""
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        return self.session

    def close(self):
        os.close(self.to_browser)
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
        os.close(self.from_browser)

    def _read(self, deadline):
        if not self.ready.select(max(0, deadline - time.monotonic())):
            raise TimeoutError("the browser does not answer")
        data = os.read(self.from_browser, 1 << 20)
        if not data:
            raise EOFError("the browser has gone")
        *messages, self.rest = (self.rest + data).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self.answers[message["id"]] = message
            else:
                self.events.append((message["method"], message["params"]))

    def call(self, method, **params):
        self.n_calls += 1
        message = {"id": self.n_calls, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_browser, data):]
        deadline = time.monotonic() + PATIENCE_S
        while message["id"] not in self.answers:
            self._read(deadline)
        answer = self.answers.pop(message["id"])
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def js(self, expression):
        """The expression's value; a promise's when it has come."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True,
                         userGesture=True)
        assert "exceptionDetails" not in done, (expression, done["exceptionDetails"])
        return done["result"].get("value")

    def wait(self, expression, what=""):
        """Until the expression is true; its value."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            value = self.js(expression)
            if value:
                return value
            if time.monotonic() > deadline:
                raise TimeoutError(f"never: {what or expression}\n" + self.js("document.body.innerText"))
            time.sleep(0.02)

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def press(self, key, shift=False):
        codes = {"Enter": 13, "Escape": 27, "Tab": 9}
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, modifiers=8 if shift else 0,
                      windowsVirtualKeyCode=codes[key], **(text if kind == "keyDown" else {}))

    def write(self, text):
        self.call("Input.insertText", text=text)

    def screen(self, width, height, scheme="light", mobile=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=mobile)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
