"""Tries what llama.cpp's own clients ask of drey serve: probabilities after the filters, progress
of the prompt, what a text was written with, pieces of tokens, endpoints that are closed,
conversations that contradict themselves. serve_native.py DREY FOLDER"""
import math

from serve_client import *

drey, folder = sys.argv[1:]
model, draft = f"{folder}/toy.gguf", f"{folder}/draft.gguf"
native, chat = "/completion", "/v1/chat/completions"
PROMPT = "The tree is not for the draft"


def written(server, **more):
    status, answer = server.post(native, {"prompt": PROMPT, "n_predict": 12, "ignore_eos": True, "seed": 5, "n_probs": 10, **more})
    check(status == 200, f"{more}: {answer}")
    return answer


def shares_of(logprobs, temperature, top_k, top_p, min_p):
    """[(id, probability)] that the filters leave of the most likely tokens, by their definition."""
    kept, total = logprobs[:top_k], 0.0
    whole = sum(math.exp(p) for _, p in kept)
    for n, (_, logprob) in enumerate(kept):
        if n > 0 and (total >= top_p * whole or logprob < kept[0][1] + math.log(min_p)):
            kept = kept[:n]
            break
        total += math.exp(logprob)
    weights = [math.exp((p - kept[0][1]) / temperature) for _, p in kept]
    return [(token, w / sum(weights)) for (token, _), w in zip(kept, weights)]


def probabilities(server):
    """The same text has them, with and without drafts; they follow from its log-probabilities."""
    filters = {"temperature": 0.8, "top_k": 10, "top_p": 0.9, "min_p": 0.02}
    plain = written(server, **filters)
    n_left = set()
    for speculative in (True, False):
        answer = written(server, post_sampling_probs=True, speculative=speculative, **filters)
        check(answer["content"] == plain["content"], f"another text: {answer['content']!r} for {plain['content']!r}")
        for before, after in zip(plain["completion_probabilities"], answer["completion_probabilities"]):
            wanted = shares_of([(t["id"], t["logprob"]) for t in before["top_logprobs"]], 0.8, 10, 0.9, 0.02)
            got = [(t["id"], t["prob"]) for t in after["top_probs"]]
            n_left.add(len(got))
            check([t for t, _ in got] == [t for t, _ in wanted], f"tokens: {got}, not {wanted}")
            check(all(abs(a - b) < 1e-4 for (_, a), (_, b) in zip(got, wanted)), f"shares: {got}, not {wanted}")
            check(after["prob"] == dict(got)[after["id"]] and "logprob" not in after, f"the token that was written: {after}")
    check(len(n_left) > 1, f"the filters leave always as many: that is no test: {n_left}")
    first = written(server, post_sampling_probs=True, temperature=0)["completion_probabilities"][0]
    check(first["prob"] == 1 and [t["id"] for t in first["top_probs"]] == [first["id"]], f"at temperature 0: {first}")
    bias = written(server, post_sampling_probs=True, temperature=1, logit_bias=[[70, 100]])["completion_probabilities"][0]
    check(bias["id"] == 70 and bias["prob"] > 0.999, f"a bias: {bias}")
    ruled = {"post_sampling_probs": True, "temperature": 1, "grammar": 'root ::= [01] [01] [01]', "ignore_eos": False}
    for token in written(server, **ruled)["completion_probabilities"]:
        texts = [t["token"] for t in token["top_probs"]]
        check(texts and all(re.fullmatch("[01]{1,3}", t) for t in texts), f"a grammar: {texts}")
    ask = {"prompt": PROMPT, "n_predict": 3, "ignore_eos": True, "n_probs": 2, "post_sampling_probs": True, "temperature": 1}
    for seed in range(16):
        # A character that the last token left incomplete comes in an event without a token.
        events = server.stream(native, dict(ask, seed=seed))[1][:-1]
        check(all(0 < e["completion_probabilities"][0]["prob"] <= 1 for e in events[:3]), f"a stream: {events}")
        check(all(e["tokens"] == [] and "completion_probabilities" not in e for e in events[3:]), f"after the last token: {events}")
    status, answer = server.post(chat, {"messages": [{"role": "user", "content": "a"}], "logprobs": True, "post_sampling_probs": True})
    check(status == 400 and "/completion" in answer["error"]["message"], f"of a chat: {answer}")


def speed(server):
    for n in (1, 2, 9):
        t = written(server, n_predict=n)["timings"]
        steps = n - 1
        wanted = 1e3 * steps / t["predicted_ms"] if steps else 0
        check(t["predicted_n"] == n and abs(t["predicted_per_second"] - wanted) <= 1e-6 * wanted, f"speed after the first token: {t}")


def progress(server):
    """Checks progress from nothing to all of the prompt, never the same twice; with timings if they
    are wanted."""
    ask = {"prompt": PROMPT * 4, "n_predict": 3, "ignore_eos": True, "return_progress": True, "timings_per_token": True}
    for known in (False, True):
        events = [e for e in server.stream(native, dict(ask, cache_prompt=known))[1] if "prompt_progress" in e]
        at = [(e["prompt_progress"]["cache"], e["prompt_progress"]["processed"], e["prompt_progress"]["total"]) for e in events]
        check(at[0][0] == at[0][1] and at[-1][1] == at[-1][2] and all(a[1] < b[1] for a, b in zip(at, at[1:])), f"progress: {at}")
        check(known == (at[0][0] > 0), f"what is known: {at}")
        check(len(at) == 2 if known else len(at) > 2, f"a long prompt: {at}")
        times = [e["timings"] for e in events]
        check(times[0]["prompt_n"] + times[0]["predicted_n"] == 0 or known, f"at the beginning: {times[0]}")
        check(all(a["prompt_ms"] <= b["prompt_ms"] and b["predicted_ms"] == 0 for a, b in zip(times, times[1:])), f"timings: {times}")
        check(known or (times[0]["prompt_ms"] == 0 < times[-1]["prompt_ms"]), f"timings: {times}")


def verbose(server):
    messages = [{"role": "user", "content": "What is it?"}, {"role": "assistant", "content": "It"}]
    body = {"messages": messages, "max_tokens": 3, "ignore_eos": True, "stop": ["\u00e9"], "logit_bias": {"70": -1, "71": False}}
    status, answer = server.post(chat, dict(body, verbose=True))
    more = answer["__verbose"]
    check(more["prompt"].endswith("What is it?<|im_end|>\n<|im_start|>assistant\nIt"), f"the prompt: {more}")
    settings = more["generation_settings"]
    check(settings["stop"] == ["\u00e9"] and settings["logit_bias"] == [{"token": 70, "bias": -1}, {"token": 71, "bias": None}], f"settings: {settings}")
    check(more["truncated"] is False and more["stop_type"] == "limit", f"the end: {more}")
    check("__verbose" not in server.post(chat, body)[1] and "__verbose" not in server.post(chat, dict(body, verbose=False))[1], "verbose, not asked for")
    events = server.stream(chat, dict(body, verbose=True))[1]
    check(events[-2]["__verbose"]["prompt"] == more["prompt"] and not any("__verbose" in e for e in events[:-2]), f"a stream: {events}")


def contradictions(server):
    user, assistant = {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}
    for body, words in (({"messages": [user, assistant, assistant]}, "last two messages"),
                        ({"messages": [user, assistant], "continue_final_message": True, "add_generation_prompt": True}, "contradict")):
        status, answer = server.post(chat, dict(body, max_tokens=1))
        check(status == 400 and words in answer["error"]["message"], f"{body}: {status} {answer}")
    check(server.post(chat, {"messages": [user, assistant, assistant, user], "max_tokens": 1})[0] == 200, "two answers in the middle")


def pieces(server):
    """A token that is a part of a character is an array of bytes."""
    got = server.post("/tokenize", {"content": "\U0001f917 a", "with_pieces": True})[1]["tokens"]
    parts = [t["piece"].encode() if isinstance(t["piece"], str) else bytes(t["piece"]) for t in got]
    check(b"".join(parts) == "\U0001f917 a".encode(), f"pieces: {got}")
    check(any(isinstance(t["piece"], list) for t in got) and any(isinstance(t["piece"], str) for t in got), f"pieces: {got}")


def blanks():
    """SentencePiece's blank in front of a text: tokens keep theirs, and none comes in front of an
    answer that is continued."""
    s = Server(drey, f"{folder}/words.gguf", "-d", "none", "--chat-template", "chatml").wait_ready()
    got = s.post("/tokenize", {"content": "the tree", "with_pieces": True})[1]["tokens"]
    check("".join(t["piece"] for t in got) == " the tree", f"pieces: {got}")
    answer = s.post(native, {"prompt": "the tree", "n_predict": 1})[1]
    check(answer["prompt"].endswith(" the tree"), f"the prompt: {answer}")
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "the tree"}]
    answer = s.post(chat, {"messages": messages, "max_tokens": 1, "verbose": True})[1]
    check(answer["__verbose"]["prompt"].endswith("assistant\nthe tree"), f"an answer that is continued: {answer}")
    check(answer["usage"]["prompt_tokens"] == s.post("/v1/chat/completions/input_tokens", {"messages": messages})[1]["input_tokens"], "its tokens")
    check(s.stop() == 0, f"the server's end: {s.errors()}")


def began(server):
    status, headers, _ = server.request("GET", "/metrics")
    check(status == 200 and 0 <= time.time() - int(headers["Process-Start-Time-Unix"]) < 3600, f"when it began: {headers}")


def in_the_lobby(path, template, half):
    """Checks that clients hear, while a server reads its template, that it is not there yet; a
    request that is not whole stays for it."""
    def ask(text):
        c = socket.socket(socket.AF_UNIX)
        c.settimeout(60)
        while c.connect_ex(path):
            time.sleep(0.01)
        c.sendall(text)
        return c
    half.append(ask(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n"))
    for text, wanted in ((b"GET /health", 503), (b"GET /", 404), (b"GET /nothing", 404), (b"OPTIONS /completion", 204), (b"nonsense\r\n\r\n", 400),
                         (b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}", 503)):
        status, headers, body = read_refusal(ask(text if b"\r" in text else text + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        check(status == wanted and (status != 503 or (headers["Retry-After"] == "1" and json.loads(body)["error"]["message"] == "Loading model")),
              f"in the lobby, {text}: {status} {body}")
    with open(template, "w") as f:
        f.write("{{ messages[0].content }}")


def closed():
    path, template, half = f"{folder}/lobby.sock", f"{folder}/lobby.jinja", []
    os.mkfifo(template)
    waits = threading.Thread(target=in_the_lobby, args=(path, template, half))
    waits.start()
    s = Server(drey, model, "-d", "none", "--closed", "page,slots", "--host", path, "--chat-template", template).wait_ready()
    waits.join()
    half[0].sendall(b"\r\n")
    check(read_refusal(half[0])[0] == 200, "a request that began in the lobby")
    check(any(re.match("503 POST /v1/chat/completions  .*: Loading model$", line) for line in s.lines()), f"the lobby's lines: {s.lines()}")
    for path, wanted in (("/", 404), ("/index.html", 404), ("/slots", 501), ("/metrics", 200), ("/health", 200), ("/props", 200)):
        status, text = s.get(path)
        check(status == wanted, f"closed, {path}: {status} {text[:100]}")
    check(s.stop() == 0, f"the server's end: {s.errors()}")
    wrong_word = subprocess.run([drey, "serve", "-m", model, "--closed", "page,everything"], capture_output=True, text=True)
    check(wrong_word.returncode == 2 and "--closed takes page, metrics and slots" in wrong_word.stderr, f"a wrong word: {wrong_word}")


def told(s):
    """A line for each request on standard error, with no text of it and no query; that it is ready,
    that it stops."""
    check(s.post("/v1/completions?api_key=secret", {"prompt": "An unheard-of word", "max_tokens": 3, "ignore_eos": True})[0] == 200, "a text")
    check(s.post("/completion", {"prompt": "a", "top_k": "unheard"})[0] == 400 == s.post("/completion", {"prompt": "a", "grammar": "root ::= unheard"})[0], "bad fields")
    check(s.get("/" + 300 * "x")[0] == 404 and s.raw(b"GET /\x1b[2J HTTP/1.1\r\nHost: localhost\r\n\r\n")[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 404"), "odd paths")
    check(b"in place of https://" in s.raw(b"\x16\x03\x01\x02\x00\x01"), "a client that speaks TLS")
    check(s.stop() == 0, f"the server's end: {s.errors()}")
    lines = s.lines()
    ready = [line for line in lines if line.startswith("ready: ")]
    check(len(ready) == 1 and re.fullmatch(fr"ready: page {s.address}, API {s.address}/v1, model toy \([0-9.]+[KMG]\)", ready[0]), f"ready: {ready}")
    check("stopping" in lines and lines[-1] == "stopped", f"the end: {lines[-3:]}")
    said = [line for line in lines if re.match(r"[0-9-]{3} ", line)]
    check(any(re.fullmatch(r"200 POST /v1/completions  \d+ tokens?( \(\d+ reused\))?, 3 written, [0-9.e+]+/s, first word after [0-9.]+ m?s, [0-9.]+ m?s", line) for line in said), f"a text's line: {said[-5:]}")
    check(any(re.fullmatch(r"404 GET /x{50,90}\.\.\.  [0-9.]+ m?s: There is no \"\.\.\.\" here: .*", line) for line in said), f"a long path: {said[-3:]}")
    check(sum("400 POST /completion  " in line and re.search(r"s: Field '(top_k' takes a whole number from .* to \d+\.|grammar': \.\.\.\.)$", line) is not None for line in said) == 2, f"why: {said}")
    check(not any(word in "".join(lines) for word in ("/health", "secret", "unheard", "\x1b")), "what has no place in a line")


s = Server(drey, model, "-d", draft, "--sessions", "2", "--prompt-chunk", "16").wait_ready()
for test in (probabilities, speed, progress, verbose, contradictions, pieces, began, told):
    test(s)
blanks()
closed()
done()
