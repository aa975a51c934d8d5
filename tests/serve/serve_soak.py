"""A soak of drey serve: many requests at a time, a third of them hung up at random places, a tenth
malformed. At the end every session is free, no answer had another text than drey run, and memory
has not grown. serve_soak.py DREY FOLDER [REQUESTS [CLIENTS [CONNECTIONS]]]; CONNECTIONS: so many
are opened at once at the end"""
import random, resource, threading

from serve_client import *

drey, folder = sys.argv[1:3]
n_requests, n_clients, n_connections = [int(x) for x in (sys.argv[3:] + ["300", "12", "2000"][len(sys.argv) - 3:])]
model = f"{folder}/toy.gguf"
prompts = ["The tree", "A text begins", "While the disk reads", "0123456789", "return x;"]
N = 60
counts = {"answered": 0, "hung up": 0, "malformed": 0, "refused": 0}
lock = threading.Lock()


def count(what):
    with lock:
        counts[what] += 1


def raw_request(body, rng):
    body = json.dumps(body).encode()
    path = rng.choice([b"/v1/completions", b"/completion"])
    return b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def request_of(rng):
    return {"prompt": rng.choice(prompts), "max_tokens": N, "n_predict": N, "ignore_eos": True, "stream": rng.random() < 0.5,
            "logprobs": rng.choice([None, 2]), "n_probs": rng.choice([0, 1])}


def hang_up(s, rng):
    c = s.connect()
    data = raw_request(request_of(rng), rng)
    try:
        c.sendall(data[:rng.randrange(1, len(data) + 1)] if rng.random() < 0.3 else data)
        if rng.random() < 0.7:
            time.sleep(rng.random() * 0.03)
        if rng.random() < 0.5:
            c.settimeout(0.01)
            c.recv(rng.randrange(1, 4000))
    except OSError:
        pass
    c.close()
    count("hung up")


def malformed(s, rng):
    data = bytearray(raw_request(request_of(rng), rng))
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data))
        data[at:at + rng.randrange(3)] = bytes(rng.randrange(256) for _ in range(rng.randrange(4)))
    c = s.connect()
    c.settimeout(0.2)
    try:
        c.sendall(data)
        c.recv(1000)
    except OSError:
        pass
    c.close()
    count("malformed")


def answered(s, rng, wanted):
    prompt = rng.choice(prompts)
    body = {"prompt": prompt, "max_tokens": N, "ignore_eos": True}
    if rng.random() < 0.5:
        status, events = s.stream("/v1/completions", body)
        text = "".join(e["choices"][0]["text"] for e in events if isinstance(e, dict) and e.get("choices"))
    else:
        status, answer = s.post("/v1/completions", body)
        text = answer["choices"][0]["text"] if status == 200 else None
    if status == 503:
        count("refused")
        return
    check(status == 200 and text == wanted[prompt], f"{prompt}: {status}, another text: {text!r}")
    count("answered")


def client(s, seed, n, wanted):
    rng = random.Random(seed)
    for _ in range(n):
        what = rng.random()
        try:
            if what < 1 / 3:
                hang_up(s, rng)
            elif what < 1 / 3 + 0.1:
                malformed(s, rng)
            else:
                answered(s, rng, wanted)
        except ConnectionResetError:  # one connection too many, whose answer its own request overtook
            count("refused")
        except (OSError, http.client.HTTPException) as e:
            wrong(f"a client: {e!r}")


def round_of(s, n, wanted, seed):
    together(lambda i: client(s, seed + i, n // n_clients, wanted), range(n_clients))
    check(s.idle(), "sessions are busy at the end")
    check(not any(x["is_processing"] for x in json.loads(s.get("/slots")[1])), "a slot is busy at the end")


def kib(pid, what):
    return int(re.search(rf"{what}:\s+(\d+)", open(f"/proc/{pid}/status").read()).group(1))


def resident(pid):
    return kib(pid, "VmRSS")


def is_sanitized(pid):
    """Sanitizers shadow all addresses, and keep what was freed for a while."""
    return kib(pid, "VmSize") > 1 << 30


def server_pid(s):
    """For a script that runs it."""
    pid = s.process.pid
    while True:
        children = open(f"/proc/{pid}/task/{pid}/children").read().split()
        if not children or open(f"/proc/{pid}/comm").read().strip() == "drey":
            return pid
        pid = int(children[0])


def many_connections(s):
    most = min(n_connections, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 100)
    open_ones = []
    known = s.connection()  # it is in already, and asks
    known.putrequest("POST", "/v1/completions")
    body = json.dumps({"prompt": "a", "max_tokens": 2}).encode()
    known.putheader("Content-Length", str(len(body)))
    known.endheaders(body[:1])
    for _ in range(most):
        try:
            open_ones.append(s.connect())
        except OSError:
            break
    check(len(open_ones) == most, f"{len(open_ones)} of {most} connections")
    known.send(body[1:])
    check(known.getresponse().status == 200, f"who asked before {most} connections is not served on")
    known.close()
    for c in open_ones:
        c.close()
    for _ in range(2000):
        try:
            if s.get("/health")[0] == 200:
                return
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.05)
    wrong(f"no request is served after {most} connections")


def main():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    wanted = {p: run(drey, model, p, N, "--ignore-eos") for p in prompts}
    s = Server(drey, model, "-d", f"{folder}/draft.gguf", "-c", "128", "--sessions", "4", "--connections", "32").wait_ready()
    round_of(s, max(n_requests // 5, n_clients), wanted, 1)
    many_connections(s)
    # Buffers that are there from the start are touched at first use; a leak grows in each round.
    for turn in range(5):
        before = resident(server_pid(s))
        round_of(s, n_requests * 4 // 5, wanted, 100 + 100 * turn)
        many_connections(s)
        after = resident(server_pid(s))
        grown = after >= before + 1024 and not is_sanitized(server_pid(s))
        if not grown:
            break
    check(not grown, f"memory grew from {before} to {after} KiB in round {turn + 1}")
    n_all = sum(counts.values())
    check(counts["answered"] > n_all / 3 and counts["refused"] < n_all / 5, f"{counts}")
    code = s.stop()
    check(code == 0, f"the server ends with {code}: {s.errors()[-2000:]}")
    if n_requests > 1000:
        print(f"{counts}, resident {before} and {after} KiB")


main()
done()
