"""drey serve on two ranks: in company and with clients that leave, each text is that of a server on
one; the server ends all ranks when it is asked to; a rank that is killed or that hangs ends it,
with its name. serve_ranks.py DREY FOLDER"""

from serve_client import *

drey, folder = sys.argv[1:]
model, draft = f"{folder}/m.gguf", f"{folder}/d.gguf"
MPIRUN = ["mpirun", "--oversubscribe", "-n"]
TWO = MPIRUN + ["2"]
STORY = "Once upon a time there was a squirrel who had a nest, high in a tree, and "
PROMPTS = [STORY + word for word in ("nuts", "a friend", "no friend")] + ["A short one", "B", "C"]


def begin(before, *options):
    return Server(drey, model, "--sessions", "3", "-c", "4096", *options, before=before)


def ask(server, prompt, n=40):
    return server.post("/v1/completions", {"prompt": prompt, "max_tokens": n, "ignore_eos": True})


def leave(server):
    """Reads a bit of a text and hangs up."""
    s = server.connect()
    body = json.dumps({"prompt": STORY + "left", "max_tokens": 2000, "ignore_eos": True, "stream": True})
    s.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    s.recv(1000)
    s.close()


def rank_pid(server, rank):
    for pid in children(server.process.pid):
        with open(f"/proc/{pid}/environ", "rb") as f:
            if f"OMPI_COMM_WORLD_RANK={rank}\0".encode() in f.read():
                return pid
    raise SystemExit(f"rank {rank} is not there: {server.errors()}")


def same_texts(*options):
    one, two = begin([], *options).wait_ready(), begin(TWO, *options).wait_ready()
    wanted = {prompt: ask(one, prompt)[1]["choices"][0]["text"] for prompt in PROMPTS}
    got = {}

    def each(prompt):
        if prompt is None:
            leave(two)
        elif prompt == "health":
            check(two.get("/health")[0] == 200 and two.metric("llamacpp:requests_processing") is not None, "no health")
        else:
            got[prompt] = ask(two, prompt)[1]["choices"][0]["text"]
    together(each, PROMPTS[:3] + [None, "health"] + PROMPTS[3:] + [None, "health"])
    for prompt in PROMPTS:
        check(got.get(prompt) == wanted[prompt], f"{options}: {prompt!r}: {got.get(prompt)!r} instead of {wanted[prompt]!r}")
    status, answer = two.post("/slots/0?action=save", {"filename": "x"})
    check(status >= 400, f"a session was saved: {status} {answer}")
    check(one.stop() == 0, f"one rank's end: {one.errors()}")
    os.kill(rank_pid(two, 0), signal.SIGTERM)
    check(two.process.wait(120) == 0, f"two ranks' end: {two.errors()}")


def long_text(server, found):
    try:
        found.append(ask(server, "A text without an end", 4000))
    except (OSError, http.client.HTTPException) as e:
        found.append(e)


def during_a_text(happens, *options, n_texts=1):
    """Returns what clients get, and how the server ends, if that happens while it writes."""
    server, found = begin(TWO, *options).wait_ready(), []
    threads = [threading.Thread(target=long_text, args=(server, found)) for _ in range(n_texts)]
    for t in threads:
        t.start()
    while server.metric("llamacpp:requests_processing") == 0:
        time.sleep(0.02)
    pid = rank_pid(server, 1)
    happens(server, pid)
    for t in threads:
        t.join()
    code = server.process.wait(120)
    return found, code, server.errors(), pid


def ends():
    """Ctrl-C and kill reach mpirun, which passes an end on to all."""
    for number in (signal.SIGINT, signal.SIGTERM):
        found, code, said, _ = during_a_text(lambda server, pid: server.process.send_signal(number))
        good = isinstance(found[0], tuple) and found[0][0] == 200
        check(good and found[0][1]["choices"][0]["text"], f"signal {number}: {found}: {said}")


def failures():
    found, code, said, _ = during_a_text(lambda server, pid: os.kill(pid, signal.SIGKILL))
    check(code != 0 and re.search("rank 1 .*signal 9", said), f"killed: {code}: {said}")
    found, code, said, pid = during_a_text(lambda server, pid: os.kill(pid, signal.SIGSTOP), "--rank-wait", "5", n_texts=5)
    hangs = r"rank 1 \(.*\) has said nothing for 5 seconds"
    for one in found:
        good = isinstance(one, tuple) and one[0] == 500
        check(good and re.search(hangs, one[1]["error"]["message"]), f"a rank that hangs: {one}")
    check(code != 0 and re.search("(?m)^drey: error: " + hangs, said), f"hung: {code}: {said}")
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass  # mpirun has ended it


same_texts("-d", "none")
same_texts("-d", draft)
ends()
failures()
done()
