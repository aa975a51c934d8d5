"""Clients that keep their places for nothing: half requests without a key, bodies that never come,
answers that nobody reads. Others are served all the same.
serve_crowd.py DREY FOLDER"""

from serve_client import *

drey, folder = sys.argv[1:]
KEY = {"Authorization": "Bearer sekret"}
N = 6
half = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX: "
models = f"{folder}/crowd"
os.mkdir(models)
os.link(f"{folder}/toy.gguf", f"{models}/toy.gguf")


def serve(many, *options):
    usual = ["-d", "none", "--sessions", "1", "-c", "4000", "--connections", str(N), *options]
    return Server(drey, None if many else f"{folder}/toy.gguf", *(["--models", models] if many else []), *usual).wait_ready()


def post(body, more=b"", path=b"/v1/completions"):
    return b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sekret\r\n" + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


def crowd(s, data, n):
    """Clients that send this and no more."""
    found = []
    for _ in range(n):
        c = s.connect()
        try:
            c.sendall(data)
        except OSError:
            pass  # it had to go already
        found.append(c)
    return found


def leave(clients):
    for c in clients:
        c.close()


def served(s, what, headers, body=None):
    status, _, answer = s.request("POST" if body else "GET", "/v1/completions" if body else "/v1/models", body, headers)
    check(status == 200, f"{what}: {status} {answer[:200]}")


def without_a_key(many):
    s = serve(many, "--api-key", "sekret", "--timeout", "600")
    long = {"prompt": "a " * 12000, "max_tokens": 1}
    first = {"prompt": "a", "max_tokens": 1}
    served(s, "one alone", KEY, first)
    for name, data in (("half heads", half), ("nothing", b""), ("bodies of an open endpoint", b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\nx"),
                       ("the page, which nobody reads", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                       ("a wrong key", half[:-3] + b"Authorization: Bearer no\r\nX: ")):
        for _ in range(2):
            clients = crowd(s, data, 3 * N)
            served(s, name, KEY)
            served(s, f"a text after {name}", KEY, first)
            status, _, answer = s.request("POST", "/v1/completions", long, KEY)
            check(status == 400 and b"tokens" in answer, f"a large body after {name}: {status} {answer[:200]}")
            status, answer = s.get("/health")
            check(status == 200, f"health after {name}: {status} {answer}")
            leave(clients)
    # One that has shown its key, and waits for its next request, stays.
    c = s.connection()
    c.request("GET", "/v1/models", headers=KEY)
    c.getresponse().read()
    if not many:
        clients = crowd(s, half, 3 * N)
        served(s, "another one", KEY)
        c.request("GET", "/v1/models", headers=KEY)
        check(c.getresponse().status == 200, "a client with a key had to go")
        leave(clients)
    check(s.stop() == 0, f"the end: {s.errors()}")


def with_no_key_at_all(many):
    s = serve(many, "--timeout", "600")
    for name, data in (("half heads", half), ("nothing", b"")):
        clients = crowd(s, data, 3 * N)
        for _ in range(100):  # one that has just come is about to ask
            if s.get("/v1/models")[0] == 200:
                break
            time.sleep(0.05)
        served(s, name, {})
        leave(clients)
    check(s.stop() == 0, f"the end: {s.errors()}")


def with_keys_and_slow(many):
    """Bodies that drip and answers that nobody reads keep their places for some seconds; a text
    that is being written keeps it."""
    s = serve(many, "--api-key", "sekret", "--timeout", "12")
    served(s, "one alone", KEY, {"prompt": "a", "max_tokens": 1})
    text = json.dumps({"prompt": "a", "max_tokens": 3500, "ignore_eos": True, "stream": True}).encode()
    (writes,) = crowd(s, post(text), 1)
    check(b" 200 " in writes.recv(20), "a text that is written")
    slow = crowd(s, post(b"x")[:-1], N // 2) + crowd(s, b"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sekret\r\n\r\n", N // 2)
    since, status = time.monotonic(), 0
    while status != 200 and time.monotonic() < since + 9:  # they would have to go after 12
        status = s.request("GET", "/v1/models", None, KEY)[0]
        time.sleep(0.1)
    check(status == 200, f"slow clients with a key lock out others for {time.monotonic() - since:.0f} s")
    writes.settimeout(60)
    check(len(writes.recv(1000)) > 0, "the text that is written had to go")
    leave(slow + [writes])
    check(s.stop() == 0, f"the end: {s.errors()}")


def of_one_address(many):
    """Bodies that do not come have all places, but not for a client from elsewhere."""
    s = serve(many, "--api-key", "sekret", "--timeout", "600")
    served(s, "one alone", KEY, {"prompt": "a", "max_tokens": 1})
    clients = crowd(s, post(b"x")[:-1], N)
    for source, wanted in (("127.0.0.1", 503), ("127.0.0.2", 200)):
        c = http.client.HTTPConnection(s.host, s.port, timeout=60, source_address=(source, 0))
        c.request("GET", "/v1/models", headers=KEY)
        status = c.getresponse().status
        check(status == wanted, f"a client from {source}: {status}")
        c.close()
    leave(clients)
    check(s.stop() == 0, f"the end: {s.errors()}")


for each in False, True:
    of_one_address(each)
    without_a_key(each)
    with_no_key_at_all(each)
with_keys_and_slow(False)
with_keys_and_slow(True)
done()
