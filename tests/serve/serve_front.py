"""Tests of clients in front of several models: names of all kinds, full houses, clients that stop
sending or leave while a model loads, processes that die, loading and unloading, the end.
serve_front.py DREY MAKE_TOY FOLDER"""

from serve_client import *

drey, make_toy, folder = sys.argv[1:]
models = f"{folder}/front"
os.mkdir(models)
ODD = ["a,b", "a b", "50%25", 'quoted "x"', "ünïcode", "a+b&c=d", "x" * 120, "a"]
for name in ODD:
    subprocess.run([make_toy, f"{models}/{name}.gguf", "2"], check=True)
for part in 1, 2:  # of one that cannot be called "a"
    open(f"{models}/a-0000{part}-of-00002.gguf", "w").write("no model")
os.mkfifo(f"{models}/pipe.gguf")  # no files: they are not there
os.mkdir(f"{models}/folder.gguf")
os.symlink("nowhere", f"{models}/dangling.gguf")
open(f"{models}/empty.gguf", "w").close()
with open(f"{models}/a.gguf", "rb") as whole:
    open(f"{models}/cut.gguf", "wb").write(whole.read()[:40000])
with open(f"{models}/a.gguf", "rb") as whole:  # which comes first
    open(f"{models}/0.gguf", "wb").write(whole.read().replace(b"llama", b"lxama", 1))
BROKEN = ["0", "a-00001-of-00002", "cut", "empty"]
OPTIONS = ["-d", "none", "-c", "4000"]
wanted = run(drey, f"{models}/a.gguf", "a tree", 8, "--ignore-eos")
writes = json.dumps({"model": "a", "prompt": "a tree", "max_tokens": 8, "ignore_eos": True}).encode()


def serve(*options, memory="unlimited"):
    return Server(drey, None, "--models", models, *OPTIONS, *options, memory=memory).wait_ready()


def ask(s, name, **more):
    return s.post("/v1/completions", dict({"model": name, "prompt": "a tree", "max_tokens": 8, "ignore_eos": True}, **more))


def text(s, name):
    status, answer = ask(s, name)
    return answer["choices"][0]["text"] if status == 200 else f"{status} {answer}"


def model(s, name):
    listed = {m["id"]: m for m in json.loads(s.get("/v1/models")[1])["data"]}
    return listed[name]


def wait_for(s, name, *states):
    for _ in range(1200):
        if model(s, name)["status"]["value"] in states:
            return True
        time.sleep(0.05)
    return check(False, f"{name} is never {states}: {model(s, name)}")


def post(body, more=b"", path=b"/v1/completions", version=b"HTTP/1.1"):
    return b"POST " + path + b" " + version + b"\r\nHost: localhost\r\n" + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


def names(s):
    listed = [m["id"] for m in json.loads(s.get("/v1/models")[1])["data"]]
    check(sorted(listed) == sorted(ODD + BROKEN), f"models: {listed}")
    check(sorted(m["name"] for m in json.loads(s.get("/api/tags")[1])["models"]) == sorted(ODD), "ollama's list")
    for name in BROKEN:
        check(model(s, name)["status"]["value"] == "failed" and model(s, name)["drey"]["failed"], f"{name} before anybody asks: {model(s, name)}")
    check(model(s, "a")["status"]["value"] == "unloaded", f"a whole one: {model(s, 'a')}")
    check(json.loads(s.get("/api/ps")[1]) == {"models": []} and "version" in json.loads(s.get("/api/version")[1]), "ollama's questions")
    for path, part in (("/props", b"router"), ("/slots", b"[]"), ("/metrics", b"drey:models_loaded 0")):
        status, answer = s.get(path)
        check(status == 200 and part in answer, f"{path} while none is loaded: {status} {answer}")
    check(s.post("/v1/streams/lookup", {"conversation_ids": ["a"]})[0] == 404, "streams while no model is loaded")
    check(children(s.process.pid) == [], "who looks has a model loaded")
    check("lxama" in model(s, "0")["drey"]["failed"], f"one that is not supported: {model(s, '0')}")
    status, answer = s.post("/v1/completions", {"prompt": "a", "max_tokens": 1})
    check(status == 200 and answer["model"] == min(ODD), f"without a name, the first that can be run: {status} {answer}")
    for name in ODD:
        check(text(s, name) == wanted, f"{name}: {text(s, name)!r}")
        status, answer = ask(s, name, stream=False)
        check(answer["model"] == name, f"{name} is called {answer.get('model')}")
        quoted = "".join(f"%{byte:02X}" for byte in name.encode())
        check(s.get(f"/v1/models/{quoted}")[0] == 200 and s.get(f"/props?model={quoted}")[0] == 200, f"{name} in a path")
        s.post("/models/unload", {"model": name})
    status, answer = s.post("/api/generate", {"model": "a:latest", "prompt": "a tree", "raw": True, "stream": False, "options": {"num_predict": 8}})
    check(status == 200 and answer["response"], f"ollama's usual tag: {answer}")
    for name in BROKEN:
        status, answer = ask(s, name)
        check(status == 500 and "could not be loaded" in answer["error"]["message"], f"{name}: {status} {answer}")
        check(model(s, name)["status"]["value"] == "failed" and model(s, name)["drey"]["failed"], f"{name}: {model(s, name)}")
    subprocess.run([make_toy, f"{models}/cut.gguf", "2"], check=True)
    check(text(s, "cut") == wanted, "a file that was mended")
    s.post("/models/unload", {"model": "cut"})


def refusals(s):
    for body, status, part in (({"model": "x" * 200}, 400, "'model'"), ({"model": 5}, 400, "'model'"), ({"model": "a\0"}, 400, "'model'"),
                               ({"model": "Z"}, 404, "GET /v1/models"), ({"model": ""}, 404, "GET /v1/models")):
        got, answer = s.post("/v1/completions", dict(body, prompt="a"))
        check(got == status and part in answer["error"]["message"], f"{body}: {got} {answer}")
    for body in (b'{"model": "a', b'{"model": "a"} x', b"\xff", b""):
        got, answer = s.post("/v1/completions", body)
        check(got == 400 if body else got in (200, 400), f"{body}: {got} {answer}")
    for method, path, status in (("POST", "/nothing", 404), ("GET", "/v1/completions", 405), ("POST", "/health", 405), ("GET", "/models/load", 405), ("PUT", "/props", 405)):
        got = s.request(method, path)[0]
        check(got == status, f"{method} {path}: {got} instead of {status}")
    status, answer = s.post("/v1/messages", {"model": "none", "max_tokens": 1, "messages": []})
    check(status == 404 and answer["type"] == "error" and answer["error"]["type"] == "not_found_error", f"Anthropic's form: {answer}")
    status, answer = s.post("/api/chat", {"model": "none"})
    check(status == 404 and isinstance(answer["error"], str), f"ollama's form: {answer}")
    s.post("/models/unload", {"model": "a"})
    wait_for(s, "a", "unloaded")
    status, answer = s.post("/v1/completions?autoload=false", {"model": "a", "prompt": "a"})
    check(status == 400 and "/models/load" in answer["error"]["message"], f"autoload=false: {status} {answer}")
    status, answer = s.post("/models/load", {"model": "a"})
    check(status == 200 and answer["success"] is True and answer["status"]["value"] == "loaded", f"loading: {answer}")
    check(s.post("/v1/completions?autoload=false", {"model": "a", "prompt": "a", "max_tokens": 1})[0] == 200, "autoload=false of one that is loaded")
    status, answer = s.post("/models/unload", {"model": "a"})
    check(status == 200 and answer["success"] is True and wait_for(s, "a", "unloaded"), f"unloading: {answer}")


def half_open(s):
    """A client that sends no more still reads; the oldest HTTP knows no chunks."""
    for more in b"", b'"stream": true, ':
        c = s.connect()
        c.sendall(post(b"{" + more + writes[1:]))
        c.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: c.recv(65536), b""))
        check(b" 200 OK" in answer and b'"finish_reason":"length"' in answer, f"a client that sends no more: {answer[:300]}")
        s.post("/models/unload", {"model": "a"})
    old = s.raw(post(writes, version=b"HTTP/1.0"))
    check(b"chunked" not in old and json.loads(old.split(b"\r\n\r\n", 1)[1])["choices"][0]["text"] == wanted, f"HTTP/1.0: {old[:300]}")


def leaves_while_loading(s):
    """The model that nobody waits for any more is loaded, and others are served meanwhile."""
    check(ask(s, "a b")[0] == 200, "another model")
    s.post("/models/unload", {"model": "a"})
    wait_for(s, "a", "unloaded")
    before = set(children(s.process.pid))
    clients = [s.connect() for _ in range(2)]
    for c in clients:
        c.sendall(post(writes))
    new = set()
    while not new:
        new = set(children(s.process.pid)) - before
    for pid in new:
        try:
            os.kill(pid, signal.SIGSTOP)  # it takes as long as it likes
        except ProcessLookupError:
            pass
    for c in clients:
        c.close()
    check(text(s, "a b") == wanted and s.get("/health")[0] == 200, "others while a model loads")
    check(model(s, "a")["status"]["value"] in ("loading", "loaded"), f"a model that is loaded: {model(s, 'a')}")
    for pid in new:
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass
    check(text(s, "a") == wanted, "the model that nobody waited for")
    for _ in range(1200):
        if model(s, "a")["drey"]["requests"] == 0:
            break
        time.sleep(0.05)
    check(model(s, "a")["drey"]["requests"] == 0, "requests of clients that left")


def killed(s, name):
    """Its process, which was stopped before, ends after this many requests have reached it."""
    s.post("/models/unload", {"model": name})
    wait_for(s, name, "unloaded")
    others = set(children(s.process.pid))
    check(text(s, name) == wanted, f"{name} before its process dies")
    (pid,) = set(children(s.process.pid)) - others
    os.kill(pid, signal.SIGSTOP)
    return pid


def dies_again(s):
    """Tests what a client hears when each process of its model is killed."""
    pid, others = killed(s, "a"), set(children(s.process.pid))
    c = s.connect()
    c.sendall(post(writes))
    while model(s, "a")["drey"]["requests"] < 1:
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    answer = b""
    c.settimeout(0.01)
    while not answer:
        for other in set(children(s.process.pid)) - others:
            try:
                os.kill(other, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            answer = c.recv(65536)
        except TimeoutError:
            pass
    return answer


def dies_before_it_answers(s):
    """The model is loaded again, and answers; if it dies once more, the request is refused."""
    pid, answers = killed(s, "a"), []
    threads = [threading.Thread(target=lambda: answers.append(text(s, "a"))) for _ in range(2)]
    for t in threads:
        t.start()
    while model(s, "a")["drey"]["requests"] < 2:
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    for t in threads:
        t.join()
    check(answers == [wanted] * 2, f"after a process died: {answers}")
    for _ in range(50):  # until the one that takes its place is met before it answers
        answer = dies_again(s)
        if b" 503 " in answer[:20]:
            break
    check(b" 503 " in answer[:20] and b"Retry-After" in answer, f"a process that dies again and again: {answer[:300]}")
    check(text(s, "a b") == wanted and text(s, "a") == wanted, "after processes died")


def dies_while_it_answers():
    """The answer has no end, and the next one is whole."""
    s = serve()
    long = json.dumps({"model": "a", "prompt": "a", "max_tokens": 3900, "ignore_eos": True, "stream": True})
    c = s.connection()
    c.request("POST", "/v1/completions", long)
    r = c.getresponse()
    check(r.status == 200 and r.read(10), f"a stream: {r.status}")
    for pid in children(s.process.pid):
        os.kill(pid, signal.SIGKILL)
    try:
        wrong(f"an answer that was cut looks whole: {r.read()[-200:]}")
    except (http.client.IncompleteRead, ConnectionError):
        pass
    check(text(s, "a") == wanted, "after a process died in a stream")
    check(s.stop() == 0 and "process ended" in s.errors(), f"the server's owner: {s.errors()}")


def killed_again_and_again():
    """However its process ends before the answer, the request is asked once more of another one."""
    s = serve()
    long = {"max_tokens": 1500}
    status, whole = ask(s, "a", **long)
    check(status == 200, f"a long text: {whole}")
    for round in range(8):
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(ask(s, "a", **long))) for _ in range(2)]
        for t in threads:
            t.start()
        while model(s, "a")["drey"]["requests"] < 2 or model(s, "a")["status"]["value"] != "loaded":
            time.sleep(0.005)
        time.sleep(0.01 * round)
        for pid in children(s.process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for t in threads:
            t.join()
        texts = [a["choices"][0]["text"] if code == 200 else f"{code} {a}" for code, a in answers]
        check(texts == [whole["choices"][0]["text"]] * 2, f"killed in round {round}: {[t[:200] for t in texts]}")
    check(s.stop() == 0, f"the end: {s.errors()}")


def stopped():
    """A process that a signal has stopped does not hold up others, nor its own clients."""
    s = serve("--models-max", "1", "--timeout", "6", "--grace", "2")
    check(text(s, "a") == wanted, "before its process is stopped")
    (pid,) = children(s.process.pid)
    os.kill(pid, signal.SIGSTOP)
    since = time.monotonic()
    check(text(s, "a b") == wanted, "another model, while an idle one is stopped")
    check(time.monotonic() < since + 60 and "and is killed" in s.errors(), f"the stopped process: {s.errors()}")
    (pid,) = children(s.process.pid)
    os.kill(pid, signal.SIGSTOP)
    own, others = [], []
    threads = [threading.Thread(target=lambda: own.append(text(s, "a b"))), threading.Thread(target=lambda: others.append(text(s, "a")))]
    threads[0].start()
    while model(s, "a b")["drey"]["requests"] < 1:
        time.sleep(0.01)
    threads[1].start()
    for t in threads:
        t.join()
    check(own == others == [wanted], f"a stopped model's client, and another's: {own} {others}")
    check(s.stop() == 0, f"the end: {s.errors()}")


def idle_house():
    s = serve("--connections", "4", "--timeout", "600")
    idle = [s.connect() for _ in range(4)]
    lets_in(s)
    for c in idle:
        c.close()
    return s


def kept_beginnings():
    """Each model keeps its own, while others are loaded, and after a restart."""
    keeps = ["--prefix-memory", "4M", "--prefix-folder", f"{folder}/front_kept"]
    prompt = "The tree is not for the draft, and the leaves are not for the root."
    for cached in False, True:
        s = serve(*keeps)
        for name in "a", "a b":
            status, answer = ask(s, name, prompt=prompt)
            known = answer["drey"]["prefix"]["folder"] if status == 200 else answer
            check(status == 200 and (known >= 16) == cached, f"beginnings of {name}: {known}")
        check(s.stop() == 0, f"the end of models with beginnings: {s.errors()}")


def at_most_one():
    """--models-max: the other one goes, though there is memory for both."""
    s = serve("--models-max", "1")
    for name in "a", "a b", "a":
        check(text(s, name) == wanted, f"{name} alone")
        loaded = [m["id"] for m in json.loads(s.get("/v1/models")[1])["data"] if m["status"]["value"] == "loaded"]
        check(loaded == [name], f"loaded with {name}: {loaded}")
    check(s.stop() == 0, f"the end of --models-max: {s.errors()}")


def loading_is_use():
    """--models-max: a model that was only loaded was used then; the one of longest ago goes."""
    s = serve("--models-max", "2")
    last = []
    for name in ("a", "a b", "a,b", "a", "a b", "a,b"):
        status, answer = s.post("/models/load", {"model": name})
        check(status == 200, f"loading {name}: {status} {answer}")
        last = [*last[-1:], name]
        loaded = [m["id"] for m in json.loads(s.get("/v1/models")[1])["data"] if m["status"]["value"] == "loaded"]
        check(sorted(loaded) == sorted(last), f"loaded after {name}: {loaded}, not {last}")
    check(s.stop() == 0, f"the end of --models-max 2: {s.errors()}")


def the_end():
    """Streams end with a reason, what waits is refused, and the folder of sockets goes."""
    run = os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp(dir="/tmp")  # of this test alone
    s = serve("--grace", "3")
    check(len(os.listdir(run)) == 1, f"the folder of sockets: {os.listdir(run)}")
    c = s.connection()
    c.request("POST", "/v1/completions", json.dumps({"model": "a", "prompt": "a", "max_tokens": 3900, "ignore_eos": True, "stream": True}))
    r = c.getresponse()
    r.read(10)
    pids, rest = children(s.process.pid), []
    reads = threading.Thread(target=lambda: rest.append(r.read()))
    reads.start()
    check(s.stop() == 0, f"the end: {s.errors()}")
    reads.join()
    check(b"[DONE]" in rest[0], f"a stream at the end: {rest[0][-200:]}")
    for pid in pids:
        check(not os.path.exists(f"/proc/{pid}"), "a model's process outlives the server")
    check(os.listdir(run) == [], f"left: {os.listdir(run)}")
    os.rmdir(run)


s = serve()
names(s)
refusals(s)
half_open(s)
leaves_while_loading(s)
dies_before_it_answers(s)
check(s.stop() == 0, f"the server's end: {s.errors()}")
dies_while_it_answers()
killed_again_and_again()
stopped()
full_house(idle_house())
kept_beginnings()
at_most_one()
loading_is_use()
the_end()
done()
