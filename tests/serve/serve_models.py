"""drey serve --models: several models at one address and in one budget; each text is that of
drey run. Models come and go as requests ask for them, and what fails is one model's alone.
serve_models.py DREY MAKE_TOY FOLDER"""

import shutil

from serve_client import *

drey, make_toy, folder = sys.argv[1:]
models = f"{folder}/several"
os.mkdir(models)
for name, layers in ("a", 2), ("b", 3), ("c", 4):
    subprocess.run([make_toy, f"{models}/{name}.gguf", str(layers)], check=True)
open(f"{models}/broken.gguf", "w").write("this is not a model")
open(f"{models}/part-00002-of-00002.gguf", "w").write("nor is this")
OPTIONS = ["-d", "none", "-c", "256"]
wanted = {m: run(drey, f"{models}/{m}.gguf", "a tree", 8, "--ignore-eos") for m in "abc"}


def serve(memory, *options):
    return Server(drey, None, "--models", models, *OPTIONS, *options, memory=memory)


def body(name, **more):
    return dict({"model": name, "prompt": "a tree", "max_tokens": 8, "ignore_eos": True, "temperature": 0}, **more)


def text(s, name, **more):
    status, answer = s.post("/v1/completions", body(name, **more))
    return answer["choices"][0]["text"] if status == 200 else f"{status} {answer}"


def states(s):
    return {m["id"]: m["status"]["value"] for m in json.loads(s.get("/v1/models")[1])["data"]}


def model(s, name):
    return json.loads(s.get(f"/v1/models/{name}")[1])


def all_fit():
    s = serve("unlimited").wait_ready()
    check(states(s) == {"a": "unloaded", "b": "unloaded", "broken": "failed", "c": "unloaded"}, f"at first: {states(s)}")
    for name in "abc":
        check(text(s, name) == wanted[name], f"{name}: {text(s, name)!r}, not {wanted[name]!r}")
    check([states(s)[m] for m in "abc"] == ["loaded"] * 3, f"all have room: {states(s)}")
    status, events = s.stream("/v1/completions", body("b"))
    got = "".join(e["choices"][0]["text"] for e in events if isinstance(e, dict) and e["choices"])
    check(got == wanted["b"] and events[-1] == "[DONE]", f"a stream: {got!r}")
    status, answer = s.post("/v1/completions", {k: v for k, v in body("").items() if k != "model"})
    check(status == 200 and answer["model"] == "b", f"without a name the last one: {answer}")
    # A stream that outlives its connection is kept by its model.
    c = s.connection()
    c.request("POST", "/v1/completions", json.dumps(body("b", stream=True)), {"X-Conversation-Id": "talk"})
    whole = c.getresponse().read()
    check(whole and s.get("/v1/stream?conv_id=talk&model=b") == (200, whole), f"a stream that was named: {whole}")
    check(s.get("/v1/stream?conv_id=talk&model=a")[0] == 404, "it is another model's")
    check(json.loads(s.get("/props?model=a")[1])["model_alias"] == "a", "/props?model=a")
    status, answer = s.post("/v1/completions", body("gpt"))
    check(status == 404 and answer["error"]["code"] == "model_not_found", f"an unknown name: {answer}")
    check("did you mean" not in answer["error"]["message"], f"nothing near: {answer}")
    status, answer = s.post("/v1/completions", body("borken"))
    check(status == 404 and 'did you mean "broken"?' in answer["error"]["message"], f"a near name: {answer}")
    status, answer = s.post("/v1/completions", body("Bro"))  # its beginning
    check(status == 500 and "is not a GGUF file" in answer["error"]["message"], f"a broken file: {answer}")
    check(states(s)["broken"] == "failed", f"a broken file: {states(s)}")
    check(s.post("/models/unload", {"model": "a"})[0] == 200, "unloading")
    check(text(s, "a") == wanted["a"], "loaded again")
    check(b"<!doctype html>" in s.get("/")[1][:100].lower(), "the page")
    check(s.request("POST", "/v1/completions", "x" * (2 << 20))[0] == 413, "a large body")
    long = body("c", prompt="a tree", user="u" * 100000)
    check(s.post("/v1/completions", long)[1]["choices"][0]["text"] == wanted["c"], "a body beyond the first buffer")
    check(s.raw(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 404"), "an unknown path")
    check(s.raw(b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400"), "no request")
    check(s.stop() == 0, f"the server's end: {s.errors()}")
    # One line for each request, by the model's process or by the server.
    lines = s.lines()
    check(any(line.startswith(f"ready: page {s.address}, API {s.address}/v1, models: a, b, c; cannot be loaded: broken") for line in lines), f"ready: {lines[:3]}")
    check(any("a: is ready: models have " in line for line in lines) and lines[-1] == "stopped", f"what models do: {lines}")
    for words, n in ((r"200 POST /v1/completions  a: \d+ tokens.*, 8 written, .*", 3), (r"404 POST /v1/completions  [0-9.]+ m?s: The model \"\.\.\.\" is not .*", 2),
                     (r"500 POST /v1/completions  broken: .*: could not be loaded: .*is not a GGUF file.*", 1), (r"413 POST /v1/completions  .*", 1), (r"200 GET /  .*", 1), (r"404 GET /nothing  .*", 1)):
        said = [line for line in lines if re.fullmatch(words, line)]
        check(len(said) == n, f"{words}: {said} of {lines}")


def one_at_a_time():
    """A budget for one of them: they take turns, also when all are asked at once."""
    s = serve("unlimited").wait_ready()
    for name in "abc":
        text(s, name)
    wants = {m: model(s, m)["drey"]["want_bytes"] for m in "abc"}
    floors = {m: model(s, m)["drey"]["floor_bytes"] for m in "abc"}
    check(s.stop() == 0, s.errors())
    check(all(0 < floors[m] <= wants[m] for m in "abc"), f"{floors} {wants}")
    budget = max(wants.values()) + (40 << 20)
    check(budget < wants["a"] + wants["b"], f"{wants}: two would fit, so that is no test")
    s = serve(str(budget)).wait_ready()
    got = []

    def ask(name):
        got.append((name, text(s, name)))
    together(ask, "abcabc")
    check(sorted(got) == sorted([(m, wanted[m]) for m in "abcabc"]), f"in turns: {got}")
    check(list(states(s).values()).count("loaded") == 1, f"one has room: {states(s)}")
    given = [model(s, m)["drey"]["memory_bytes"] for m in "abc"]
    check(0 < sum(given) <= budget, f"given {given} of {budget}")
    # A client that leaves while it waits is forgotten, and those after it are not.
    c = s.connect()
    c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(json.dumps(body("a"))), json.dumps(body("a")).encode()))
    c.close()
    check(text(s, "b") == wanted["b"], "after one that left")
    check(s.stop() == 0, f"the server's end: {s.errors()}")
    s = serve(str(24 << 20)).wait_ready()
    status, answer = s.post("/v1/completions", body("c"))
    check(status == 400 and "needs" in answer["error"]["message"], f"too small a budget: {status} {answer}")
    check(s.stop() == 0, f"the server's end: {s.errors()}")
    check(re.search(r" 400 POST /v1/completions  c: .*: needs \S+ at least, and this server has \S+ for all its models", s.errors()), f"why not: {s.errors()}")


def a_process_dies():
    os.environ["DREY_API_KEY"] = "secret"
    s = serve("unlimited").wait_ready()
    del os.environ["DREY_API_KEY"]
    key = {"Authorization": "Bearer secret"}
    check(s.post("/v1/completions", body("a"))[0] == 401, "without a key")
    check(json.loads(s.get("/v1/models", key)[1])["data"][0]["status"]["value"] == "unloaded", "a request without a key loaded a model")
    check(s.post("/v1/completions", body("a"), key)[0] == 200, "with the key")
    processes = children(s.process.pid)
    check(len(processes) == 1, f"processes: {processes}")
    os.kill(processes[0], signal.SIGKILL)
    for _ in range(100):
        if json.loads(s.get("/v1/models", key)[1])["data"][0]["status"]["value"] == "failed":
            break
        time.sleep(0.05)
    else:
        wrong("a killed process is not noticed")
    status, answer = s.post("/v1/completions", body("a"), key)
    check(status == 200 and answer["choices"][0]["text"] == wanted["a"], f"after a process was killed: {answer}")
    check(s.stop() == 0, f"the server's end: {s.errors()}")
    refused = subprocess.run([drey, "serve", "--models", folder + "/nowhere"], capture_output=True, text=True)
    check(refused.returncode == 1 and "cannot read the folder" in refused.stderr, refused.stderr)
    refused = subprocess.run([drey, "serve", "--models", models, "-m", "x.gguf"], capture_output=True, text=True)
    check(refused.returncode == 2 and "leave -m" in refused.stderr, refused.stderr)


def one_comes_later():
    """A file that comes while the server runs is served, also if nobody lists the models first."""
    s = serve("unlimited").wait_ready()
    for name in "de":
        shutil.copy(f"{models}/a.gguf", f"{models}/{name}.gguf")
    check(text(s, "d") == wanted["a"], "a model that came later")
    shutil.copy(f"{models}/b.gguf", f"{models}/0.gguf")
    names = [m["id"] for m in json.loads(s.get("/v1/models")[1])["data"]]
    check(names == ["a", "b", "broken", "c", "d", "e", "0"], f"after three came: {names}")
    for name in "xx", "xy":
        shutil.copy(f"{models}/a.gguf", f"{models}/{name}.gguf")
    status, answer = s.post("/v1/completions", body("x"))
    check(status == 400 and "may be xx, xy: write more" in answer["error"]["message"] and s.get("/v1/models/x")[0] == 400, f"two names: {answer}")
    check(text(s, "0") == wanted["b"], "another one")
    check(s.stop() == 0, f"the server's end: {s.errors()}")


all_fit()
one_at_a_time()
a_process_dies()
one_comes_later()
done()
