"""Prompts of drey serve: several in one request, prompts that are repeated in the answer, and which
members of an answer are wanted.
serve_prompts.py DREY FOLDER"""

from serve_client import *

drey, folder = sys.argv[1:]
model, draft = f"{folder}/toy.gguf", f"{folder}/draft.gguf"
text, native = "/v1/completions", "/completion"
TEXTS = ["The cat", "a tree", "return x", "The cat"]


def post(server, path, body):
    status, answer = server.post(path, {"ignore_eos": True, "temperature": 0.8, "seed": 3, **body})
    check(status == 200, f"{path} {body}: {answer}")
    return answer


def several(server):
    alone = [post(server, text, {"prompt": t, "max_tokens": 9, "n": 2}) for t in TEXTS]
    wanted = [choice["text"] for answer in alone for choice in answer["choices"]]
    check(len(set(wanted)) == 6, f"one text for different prompts and seeds: that is no test: {wanted}")
    answer = post(server, text, {"prompt": TEXTS, "max_tokens": 9, "n": 2})
    check([c["text"] for c in answer["choices"]] == wanted, f"several prompts: {answer}")
    check([c["index"] for c in answer["choices"]] == list(range(8)), f"their numbers: {answer}")
    check(answer["usage"]["prompt_tokens"] == sum(a["usage"]["prompt_tokens"] for a in alone), f"usage: {answer}")
    status, events = server.stream(text, {"prompt": TEXTS, "max_tokens": 9, "n": 2, "ignore_eos": True, "temperature": 0.8, "seed": 3})
    check(status == 200 and events.pop() == "[DONE]", f"a stream: {events}")
    got = ["".join(c["text"] for e in events for c in e["choices"] if c["index"] == i) for i in range(8)]
    check(got == wanted, f"several prompts in a stream: {got}")


def arrays(server):
    ids = [server.post("/tokenize", {"content": t, "add_special": True})[1]["tokens"] for t in TEXTS[:3]]
    wanted = [post(server, native, {"prompt": t, "n_predict": 6})["content"] for t in TEXTS[:3]]
    for prompts in (TEXTS[:3], ids, [{"prompt_string": t} for t in TEXTS[:3]], [ids[0], TEXTS[1], {"prompt_string": TEXTS[2]}]):
        answer = post(server, native, {"prompt": prompts, "n_predict": 6})
        check([a["content"] for a in answer] == wanted and [a["index"] for a in answer] == [0, 1, 2], f"{prompts}: {answer}")
        check([a["tokens_evaluated"] for a in answer] == [len(i) for i in ids], f"{prompts}: {answer}")
    for prompt in (ids[0], [ids[0]], [TEXTS[0]], {"prompt_string": TEXTS[0]}):
        check(post(server, native, {"prompt": prompt, "n_predict": 6})["content"] == wanted[0], f"one prompt: {prompt}")


def token_text(token):
    """Text of a token, as OpenAI's completions write one that is a part of a character."""
    token = bytes(token)
    try:
        return token.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{b:02x}" for b in token)


def echoed(server):
    """The prompt's text and the numbers of its tokens, as if they had been written."""
    ids = server.post("/tokenize", {"content": TEXTS[0], "add_special": True})[1]["tokens"]
    written = post(server, native, {"prompt": ids, "n_predict": 9, "n_probs": 2, "return_tokens": True})
    after = written["completion_probabilities"]
    prompt = ids + written["tokens"]
    whole = post(server, text, {"prompt": prompt, "max_tokens": 3, "logprobs": 2, "echo": True})
    alone = post(server, text, {"prompt": prompt, "max_tokens": 3, "logprobs": 2})
    logs, rest = whole["choices"][0]["logprobs"], alone["choices"][0]["logprobs"]
    check(whole["choices"][0]["text"] == TEXTS[0] + written["content"] + alone["choices"][0]["text"], f"echo: {whole}")
    check(logs["token_logprobs"][0] is None and logs["top_logprobs"][0] is None, f"the first token: {logs}")
    check(logs["token_logprobs"][len(ids):] == [t["logprob"] for t in after] + rest["token_logprobs"], f"log-probabilities: {logs}, not {after} {rest}")
    check(logs["top_logprobs"][len(ids):len(prompt)] == [{token_text(t["bytes"]): t["logprob"] for t in a["top_logprobs"]} for a in after], f"likely ones: {logs}")
    check(logs["tokens"] == [token_text(t) for t in logs["bytes"]] and len(logs["text_offset"]) == len(prompt) + 3, f"tokens: {logs}")
    usage = whole["usage"]
    check((usage["prompt_tokens"], usage["completion_tokens"], usage["prompt_tokens_details"]["cached_tokens"]) == (len(prompt), 3, 0), f"usage: {usage}")


def echoed_texts(server):
    for said in ("a", "The caf\u00e9 \u2713 \U0001f600!", *TEXTS[:3]):
        plain = post(server, text, {"prompt": said, "max_tokens": 4})["choices"][0]["text"]
        for more in ({}, {"logprobs": 0}, {"logprobs": 3}):
            choice = post(server, text, {"prompt": said, "max_tokens": 4, "echo": True, **more})["choices"][0]
            check(choice["text"] == said + plain, f"echo of {said!r} {more}: {choice}")
            if more:
                check(choice["logprobs"]["text_offset"] == sorted(choice["logprobs"]["text_offset"]), f"offsets: {choice}")
            events = server.stream(text, {"prompt": said, "max_tokens": 4, "echo": True, "ignore_eos": True, "temperature": 0.8, "seed": 3, **more})[1]
            choices = [c for e in events[:-1] for c in e["choices"]]
            check("".join(c["text"] for c in choices) == said + plain, f"echo in a stream of {said!r}: {choices}")
            if more:
                got = [x for c in choices if c["logprobs"] for x in c["logprobs"]["token_logprobs"]]
                check(got == choice["logprobs"]["token_logprobs"], f"log-probabilities in a stream: {got}, not {choice}")
        nothing = post(server, text, {"prompt": said, "max_tokens": 0, "echo": True, "logprobs": 1})
        check(nothing["choices"][0]["text"] == said and nothing["usage"]["completion_tokens"] == 0, f"the prompt alone: {nothing}")
    several = post(server, text, {"prompt": TEXTS, "max_tokens": 0, "echo": True, "logprobs": 1})["choices"]
    check([c["text"] for c in several] == TEXTS and several[0]["logprobs"] == several[3]["logprobs"], f"several: {several}")


def echoed_among_others(server):
    """Checks that nobody's text and no number changes while others write."""
    alone = [post(server, text, {"prompt": t, "max_tokens": 30, "echo": i % 2 == 0, "logprobs": 1})["choices"] for i, t in enumerate(TEXTS)]
    got = [None] * len(TEXTS)

    def ask(i):
        got[i] = post(server, text, {"prompt": TEXTS[i], "max_tokens": 30, "echo": i % 2 == 0, "logprobs": 1})["choices"]

    together(ask, range(len(TEXTS)))
    check(got == alone, f"at the same time: {got}, not {alone}")
    for path, body in ((native, {"prompt": "a"}), ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
                       (text, {"prompt": "a", "suffix": "b"}), (text, {"prompt": "a " * 400, "logprobs": 20})):
        status, error = server.post(path, {**body, "echo": True})
        check(status == 400 and ("'echo'" in str(error) or "those of the prompt" in str(error)), f"{path} {body}: {status} {error}")


def lines(server):
    """Editors want a line, or a block: texts that end by their lines, as in llama.cpp's server."""
    def written(regex, path=native, **more):
        body = {"prompt": "a", "n_predict": 4000, "guided_regex": regex, "ignore_eos": False, **more}
        answer = post(server, path, body)
        events = server.stream(path, {"temperature": 0.8, "seed": 3, **body})[1]
        said = answer["content"] if path == native else answer["choices"][0]["text"]
        if "t_max_predict_ms" not in more:
            check("".join(e["content"] if path == native else e["choices"][0]["text"] for e in events if e != "[DONE]") == said, f"in a stream: {events}")
        return said, answer

    block = "  x\n    a\n\t   b\n  c\n    d"
    for indent, end in ((0, 99), (2, 99), (3, 22), (4, 22), (5, 16)):
        end = {99: len(block), 22: block.index("c"), 16: block.index("a")}[end]
        said, answer = written(block, n_indent=indent)
        check(said == block[:end] and answer["stop_type"] == ("eos" if end == len(block) else "limit"), f"n_indent {indent}: {said!r} {answer['stop_type']}")
    said, answer = written("a\n\nb", n_indent=1, path=text)
    check(said == "a\n" and answer["choices"][0]["finish_reason"] == "length", f"an empty line: {answer}")
    check(written("a{300}", t_max_predict_ms=1)[0] == "a" * 300, "one line is not cut")
    said, answer = written("(a\n){1000}", t_max_predict_ms=1)
    check(said.startswith("a\n") and len(said) < 2000 and answer["stop_type"] == "limit" and answer["has_new_line"], f"many lines: {len(said)}")
    for order in ("edkypmxt", "pk", ["top_k", "top_p", "infill"], []):
        post(server, native, {"prompt": "a", "n_predict": 2, "samplers": order, "temperature": 0, "top_k": 40, "top_p": 0.9})
    same = [post(server, native, {"prompt": "a", "n_predict": 30, "samplers": order, "top_k": 3})["content"] for order in ("kt", ["top_k", "temperature"], "t", "k")]
    check(same[0] == same[1] and len(set(same)) == 3, f"letters: {same}")
    status, error = server.post(native, {"prompt": "a", "samplers": "tk", "top_k": 3, "temperature": 0.8})
    check(status == 400 and "'top_k' after 'temperature'" in error["error"]["message"], f"another order: {error}")


def fields(server):
    whole = post(server, native, {"prompt": "a", "n_predict": 3, "repeat_penalty": 1.5, "stop": ["\"{,\\"], "n_probs": 1})
    settings = whole["generation_settings"]
    check(settings["repeat_penalty"] == 1.5 and settings["stop"] == ["\"{,\\"] and settings["n_predict"] == 3, f"settings: {settings}")
    check(whole["prompt"] == "a" and whole["has_new_line"] == ("\n" in whole["content"]) and whole["tokens"] == [], f"members: {whole}")
    for names in (["content"], ["generation_settings/stop", "timings/predicted_n", "nothing", "drey/nothing", "stop/x"], ["tokens", "model"], ["nothing"],
                  ["index", "completion_probabilities", "generation_settings"]):
        answer = post(server, native, {"prompt": "a", "n_predict": 3, "repeat_penalty": 1.5, "stop": ["\"{,\\"], "n_probs": 1, "response_fields": names})
        wanted = {}
        for name in names:
            value = whole
            for part in name.split("/"):
                value = value.get(part) if isinstance(value, dict) else None
            if value is not None:
                wanted[name] = value
        check(answer == wanted, f"{names}: {answer}, not {wanted}")
    events = server.stream(native, {"prompt": "a", "n_predict": 3, "ignore_eos": True, "response_fields": ["content"]})[1]
    check(all(e["tokens"] for e in events[:-1]) and events[-1] == {"content": ""}, f"a stream: {events}")


def room(server):
    """The text after a short prompt is long, also where another prompt leaves little room."""
    n = json.loads(server.get("/props")[1])["default_generation_settings"]["n_ctx"]
    status, answer = server.post(text, {"prompt": [[1] * (n - 100), [1]], "logprobs": 20, "ignore_eos": True})
    check(status == 400 and "are more than an answer keeps" in answer["error"]["message"], f"long texts: {status} {answer}")


s = Server(drey, model, "-d", draft, "--sessions", "3").wait_ready()
several(s)
arrays(s)
echoed(s)
echoed_texts(s)
echoed_among_others(s)
lines(s)
fields(s)
room(s)
check(s.stop() == 0, f"the server's end: {s.errors()}")
done()
