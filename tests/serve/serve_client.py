"""Functions that the tests of drey serve share: their own server on a toy, and plain requests to it
(standard library only)."""
import http.client, json, os, re, signal, socket, subprocess, sys, tempfile, threading, time

failed = 0


def wrong(what):
    global failed
    failed += 1
    print(f"{os.path.basename(sys.argv[0])}: {what}")


def check(good, what):
    if not good:
        wrong(what)
    return good


def read_refusal(connection):
    """(status, headers, bytes) of an answer, read by its length: a request that comes after the
    refusal resets the connection."""
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    text = answer.read()
    connection.close()
    return answer.status, answer.headers, text


class Server:
    """drey serve on a free port; stop() says how it ended."""

    def __init__(self, drey, model, *options, log=None, memory="unlimited", before=()):
        self.log = log or tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([*before, drey, "serve", *(["-m", model] if model else []), "--port", "0", "-t", "1", "--memory", memory, *options],
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline().strip()
        if not line:
            self.process.wait()
            raise SystemExit(f"the server did not start: {self.errors()}")
        self.address = line
        if line.startswith("http://"):
            host, port = line[len("http://"):].rsplit(":", 1)
            self.host, self.port = host.strip("[]"), int(port)

    def errors(self):
        self.log.seek(0)
        return self.log.read()

    def lines(self):
        """The lines on standard error without their dates, which all but those of loading have
        after the first ones."""
        lines = self.errors().splitlines()
        dated = [re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d (.*)", line) for line in lines]
        first = next((i for i, at in enumerate(dated) if at), 0)
        check(all(at or line.startswith("load ") for at, line in list(zip(dated, lines))[first:]), f"lines without a date: {lines}")
        return [at[1] if at else line for at, line in zip(dated, lines)]

    def wait_ready(self):
        for _ in range(3000):
            if self.get("/health")[0] == 200:
                return self
            time.sleep(0.05)
        raise SystemExit("the server was never ready")

    def connect(self):
        if self.address.startswith("unix:"):
            s = socket.socket(socket.AF_UNIX)
            s.connect(self.address[len("unix:"):])
        else:
            s = socket.create_connection((self.host, self.port))
        s.settimeout(120)
        return s

    def connection(self):
        c = http.client.HTTPConnection("localhost", timeout=120)
        c.sock = self.connect()
        return c

    def request(self, method, path, body=None, headers=None):
        """(status, headers, bytes)"""
        c = self.connection()
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        c.request(method, path, body, headers or {})
        r = c.getresponse()
        text = r.read()
        c.close()
        return r.status, r.headers, text

    def get(self, path, headers=None):
        status, _, text = self.request("GET", path, None, headers)
        return status, text

    def post(self, path, body, headers=None):
        """(status, JSON)"""
        status, _, text = self.request("POST", path, body, headers)
        return status, json.loads(text)

    def raw(self, data, until_closed=True):
        """Returns what the server answers to these bytes, up to where it closes."""
        s = self.connect()
        try:
            s.sendall(data)
        except OSError:
            pass
        got = b""
        try:
            while until_closed or b"\r\n\r\n" not in got:
                piece = s.recv(65536)
                if not piece:
                    break
                got += piece
        except OSError:
            pass
        s.close()
        return got

    def stream(self, path, body):
        """The events of an answer, [DONE] as a text; comments as ":". """
        c = self.connection()
        c.request("POST", path, json.dumps(dict(body, stream=True)))
        r = c.getresponse()
        events = []
        if r.status != 200:
            return r.status, [json.loads(r.read())]
        for line in r.read().decode().split("\n\n"):
            if line.startswith("data: "):
                events.append(line[6:] if line[6:] == "[DONE]" else json.loads(line[6:]))
            elif line:
                events.append(line)
        c.close()
        return r.status, events

    def named_events(self, path, body):
        """The values of a stream whose events bear their type as a name."""
        status, headers, text = self.request("POST", path, dict(body, stream=True))
        check(status == 200 and headers["Content-Type"] == "text/event-stream", f"a stream: {status} {headers}")
        found = []
        for event in text.decode().split("\n\n"):
            if event and not event.startswith(":"):
                name, data = event.split("\n")
                check(data.startswith("data: "), f"an event: {event!r}")
                found.append(json.loads(data[6:]))
                check(name == "event: " + found[-1]["type"], f"an event's name: {event!r}")
        return found

    def metric(self, name):
        for line in self.get("/metrics")[1].decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[-1])
        return None

    def idle(self):
        """Waits until nothing is written and nothing waits; False: it never came to that."""
        for _ in range(2400):
            if self.metric("llamacpp:requests_processing") == 0 == self.metric("llamacpp:requests_deferred"):
                return True
            time.sleep(0.05)
        return False

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.stdout.close()
        return self.process.wait()


def together(ask, each):
    """Calls ask with each, all at the same time, and waits for all."""
    threads = [threading.Thread(target=ask, args=(one,)) for one in each]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def lets_in(s):
    """Connections are open as many as may be, and idle: a new client is let in."""
    since = time.monotonic()
    while s.get("/v1/models")[0] != 200 and time.monotonic() < since + 60:
        time.sleep(0.1)
    check(time.monotonic() < since + 30, "idle connections lock others out")


def full_house(s):
    """All four connections of a server are busy: each new client hears so, and the server says that
    it is well. It is stopped."""
    busy = []
    while len(busy) < 4:  # a body that never comes keeps a place
        c = s.connect()
        c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n")
        if b" 100 " in c.recv(1000)[:20]:
            busy.append(c)
    get = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
    clients = [s.connect() for _ in range(60)]
    for c in clients[:40]:
        c.sendall(get)
    check(all(s.get("/health") == (200, b'{"status":"ok"}') for _ in range(20)), "a full server's health")
    for c in clients:  # the last 20 ask for nothing, and hear it as well
        status, headers, text = read_refusal(c)
        check(status == 503 and b"onnections" in text and headers["Retry-After"], f"a full server: {status} {text}")
    busy[0].close()
    check(s.get("/v1/models")[0] == 200, "no request is served after a full house")
    check(s.stop() == 0, f"the end of a full server: {s.errors()}")


def children(parent):
    """The processes that a process has begun."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                found += [int(pid)] if int(f.read().rsplit(")", 1)[1].split()[1]) == parent else []
        except OSError:
            pass  # it has ended
    return found


def run(drey, model, prompt, n, *options):
    return subprocess.run([drey, "run", "-m", model, "-t", "1", "--memory", "unlimited", "-d", "none", "-q", "-p", prompt, "-n", str(n), *options],
                          capture_output=True, check=True).stdout.decode("utf-8", "replace")


def done():
    sys.exit(1 if failed else 0)
