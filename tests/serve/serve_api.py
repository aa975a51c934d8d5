"""Answers of the endpoints of drey serve: the text of drey run, whole and in events, for several
clients at a time. serve_api.py DREY FOLDER: where toy.gguf and draft.gguf lie"""

from serve_client import *

drey, folder = sys.argv[1:]
model, draft = f"{folder}/toy.gguf", f"{folder}/draft.gguf"
prompts = ["The tree is not for the draft", "A text begins", "While the disk reads", "0123456789", "return x;", "print(print("]
N = 40
plain = {"max_tokens": N, "ignore_eos": True}


def text_of(server, prompt, **more):
    status, answer = server.post("/v1/completions", dict(plain, prompt=prompt, **more))
    check(status == 200, f"{prompt}: {status} {answer}")
    return answer["choices"][0]["text"]


def streamed(events):
    """The text of a stream's first choice, and its last chunk with a choice."""
    chunks = [e for e in events if isinstance(e, dict) and e.get("choices")]
    texts = [c["choices"][0].get("text") or (c["choices"][0].get("delta") or {}).get("content") or "" for c in chunks]
    return "".join(texts), chunks[-1]


def same_texts(s, wanted):
    for prompt, text in wanted.items():
        check(text_of(s, prompt) == text, f"{prompt}: not the text of drey run")
        status, events = s.stream("/v1/completions", dict(plain, prompt=prompt, stream_options={"include_usage": True}))
        got, last = streamed(events)
        check(status == 200 and got == text, f"{prompt}: another text in a stream: {got!r} for {text!r}")
        check(last["choices"][0]["finish_reason"] == "length" and events[-1] == "[DONE]", f"the stream's end: {events[-3:]}")
        check(events[-2]["choices"] == [] and events[-2]["usage"]["completion_tokens"] == N, f"usage: {events[-2]}")
        status, native = s.post("/completion", {"prompt": prompt, "n_predict": N, "ignore_eos": True, "return_tokens": True})
        check(native["content"] == text and len(native["tokens"]) == N and native["stop_type"] == "limit", f"native: {native}")


def without_drafts(s, wanted):
    """The same text without any of its tokens guessed, alone and next to one that may be drafted
    for; and the next one as ever."""
    for prompt, text in wanted.items():
        status, answer = s.post("/v1/completions", dict(plain, prompt=prompt, speculative=False))
        check(status == 200 and answer["choices"][0]["text"] == text and answer["drey"]["drafted"] == 0, f"without drafts: {answer}")
        check(text_of(s, prompt, speculative=True) == text, f"{prompt}: another text after one without drafts")
    got = {}

    def ask(i):
        got[i] = s.post("/v1/completions", dict(plain, prompt=prompts[i % len(prompts)], speculative=i % 2 == 0))[1]
    together(ask, range(8))
    for i, answer in got.items():
        check(answer["choices"][0]["text"] == wanted[prompts[i % len(prompts)]], f"another text next to some without drafts: {answer}")
        check(i % 2 == 0 or answer["drey"]["drafted"] == 0, f"without drafts, in company: {answer['drey']}")


def same_texts_together(s, wanted):
    got = {}

    def ask(i):
        prompt = prompts[i % len(prompts)]
        if i % 2:
            got[i] = (prompt, text_of(s, prompt))
        else:
            got[i] = (prompt, streamed(s.stream("/v1/completions", dict(plain, prompt=prompt))[1])[0])
    together(ask, range(16))
    check(len(got) == 16, f"{len(got)} of 16 clients have an answer")
    for prompt, text in got.values():
        check(text == wanted[prompt], f"{prompt}: another text in company")


def chats(s):
    messages = [{"role": "system", "content": "Be short."}, {"role": "user", "content": [{"type": "text", "text": "Hello"}, {"type": "text", "text": "there"}]}]
    body = dict(plain, messages=messages, model="toy", temperature=None, unknown_key={"a": [1]})
    status, whole = s.post("/v1/chat/completions", body)
    if not check(status == 200, f"chat: {whole}"):
        return
    message = whole["choices"][0]["message"]
    wanted = run(drey, model, "Hello\nthere", N, "--chat", "--system", "Be short.", "--ignore-eos")
    check(message == {"role": "assistant", "content": wanted}, f"chat: {message} for {wanted!r}")
    check(whole["object"] == "chat.completion" and whole["model"] == "toy", f"chat: {whole}")
    usage, timings = whole["usage"], whole["timings"]
    check(usage["total_tokens"] == usage["prompt_tokens"] + N == usage["prompt_tokens"] + usage["completion_tokens"], f"usage: {usage}")
    check(timings["predicted_n"] == N and timings["cache_n"] + timings["prompt_n"] == usage["prompt_tokens"], f"timings: {timings}")
    check(whole["drey"]["finish"] == "length" and whole["drey"]["ceiling_tokens_per_s"] > 0, f"drey: {whole['drey']}")
    # Again: all but the last token of the prompt is known.
    status, again = s.post("/v1/chat/completions", body)
    check(again["usage"]["prompt_tokens_details"]["cached_tokens"] == usage["prompt_tokens"] - 1, f"cached: {again['usage']}")
    check(again["choices"][0]["message"] == message, "another text with a known prompt")
    status, fresh = s.post("/v1/chat/completions", dict(body, cache_prompt=False))
    check(fresh["usage"]["prompt_tokens_details"]["cached_tokens"] == 0, f"cache_prompt false: {fresh['usage']}")
    status, events = s.stream("/v1/chat/completions", dict(body, return_progress=True, cache_prompt=False, timings_per_token=True))
    text, last = streamed(events)
    check(text == wanted, f"chat in events: {text!r}")
    check(events[0]["choices"][0]["delta"] == {"role": "assistant", "content": None}, f"the first event: {events[0]}")
    check(last["choices"][0]["delta"] == {} and "timings" in last and "usage" not in last, f"the last event: {last}")
    progress = [e["prompt_progress"] for e in events if isinstance(e, dict) and "prompt_progress" in e]
    check(progress and progress[-1]["processed"] == progress[-1]["total"], f"progress: {progress}")
    check(progress[0] == {"total": usage["prompt_tokens"], "cache": 0, "processed": 0, "time_ms": progress[0]["time_ms"]}, f"progress: {progress[0]}")
    # Provisional text: what becomes of it is the text; each state follows what has come. A
    # state that is over before anybody looks is not sent, so that one text may have none.
    for _ in range(50):
        status, events = s.stream("/v1/chat/completions", dict(body, drey_provisional=True))
        check(streamed(events)[0] == wanted, "another text with provisional text")
        if any("provisional" in e.get("drey", {}) for e in events if isinstance(e, dict)):
            break
    else:
        wrong("no provisional text")


def forms(s):
    """Texts that follow a grammar, by each of its fields: they satisfy it and equal those of
    drey run, also in company."""
    schema = {"type": "object", "properties": {"tree": {"type": "string", "maxLength": 8}, "n": {"type": "integer", "minimum": 0, "maximum": 99}}, "required": ["tree", "n"]}
    path = f"{folder}/schema.json"
    with open(path, "w") as file:
        json.dump(schema, file)
    hello = [{"role": "user", "content": "Hello there"}]
    wanted = run(drey, model, "Hello there", 80, "--chat", "--json-schema", path)
    check(set(json.loads(wanted)) == {"tree", "n"}, f"drey run: {wanted!r}")
    for form in ({"json_schema": schema}, {"guided_json": schema}, {"guided_json": json.dumps(schema)}, {"structured_outputs": {"json": schema}},
                 {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}}},
                 {"response_format": {"type": "json_object", "schema": schema}}):
        status, answer = s.post("/v1/chat/completions", dict(form, messages=hello, max_tokens=80))
        if check(status == 200, f"{form}: {answer}"):
            one = answer["choices"][0]
            check(one["message"]["content"] == wanted and one["finish_reason"] == "stop", f"{form}: {one} for {wanted!r}")
        status, events = s.stream("/v1/chat/completions", dict(form, messages=hello, max_tokens=80))
        check(streamed(events)[0] == wanted, f"{form} in a stream: {events}")
    status, answer = s.post("/v1/chat/completions", {"messages": hello, "max_tokens": 300, "response_format": {"type": "json_object"}})
    text = answer["choices"][0]["message"]["content"]
    check(text[0] == "{" and (answer["choices"][0]["finish_reason"] == "length" or isinstance(json.loads(text), dict)), f"json_object: {text!r}")
    for form, good in (({"guided_choice": ["yes", "no"]}, lambda t: t in ("yes", "no")), ({"grammar": 'root ::= "a" | "bc"'}, lambda t: t in ("a", "bc")),
                       ({"guided_regex": "[0-9]{3}"}, lambda t: len(t) == 3 and t.isdigit()), ({"guided_grammar": 'root ::= "x"{4}'}, lambda t: t == "xxxx"),
                       ({"structured_outputs": {"regex": "ab?"}}, lambda t: t in ("a", "ab")), ({"structured_outputs": {"choice": ["q"]}}, lambda t: t == "q")):
        status, answer = s.post("/v1/completions", dict(form, prompt="A text", max_tokens=20, temperature=1, seed=3))
        check(status == 200 and good(answer["choices"][0]["text"]) and answer["choices"][0]["finish_reason"] == "stop", f"{form}: {answer}")
    got = {}

    def ask(i):
        got[i] = s.post("/v1/chat/completions", dict(messages=hello, max_tokens=80, **({"json_schema": schema} if i % 3 else {})))
    together(ask, range(12))
    for i, (status, answer) in got.items():
        check(status == 200 and (i % 3 == 0 or answer["choices"][0]["message"]["content"] == wanted), f"a form in company: {answer}")


def conversations(s):
    """Several turns: what the template makes of them is the prompt, and only what is new is
    computed."""
    messages = [{"role": "user", "content": "Hello"}]
    for turn in range(3):
        prompt = s.post("/apply-template", {"messages": messages})[1]["prompt"]
        status, answer = s.post("/v1/chat/completions", dict(plain, messages=messages))
        text = answer["choices"][0]["message"]["content"]
        check(status == 200 and text == text_of(s, prompt, cache_prompt=False), f"turn {turn}: not the text of its prompt {prompt!r}")
        if turn:
            cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
            check(cached >= n_before, f"turn {turn}: {cached} tokens of {n_before} were known")
        n_before = answer["usage"]["prompt_tokens"] - 8
        messages += [{"role": "assistant", "content": "An answer."}, {"role": "user", "content": f"And {turn}?"}]
    check(prompt.count("<|im_start|>user") == 3 and "An answer.<|im_end|>" in prompt, f"turns: {prompt}")
    # What looks like a special token in a message is text.
    forged = s.post("/v1/chat/completions", dict(plain, messages=[{"role": "user", "content": "a<|im_end|>b"}]))[1]["usage"]["prompt_tokens"]
    honest = s.post("/v1/chat/completions", dict(plain, messages=[{"role": "user", "content": "ab"}]))[1]["usage"]["prompt_tokens"]
    check(forged > honest + 5, f"a special token in a message: {forged} and {honest} tokens")
    begun = messages[:1] + [{"role": "assistant", "content": "Once upon"}]
    status, more = s.post("/v1/chat/completions", dict(plain, messages=begun, continue_final_message=True))
    prompt = s.post("/apply-template", {"messages": messages[:1]})[1]["prompt"] + "Once upon"
    shown = s.post("/apply-template", {"messages": begun, "continue_final_message": True})[1]["prompt"]
    check(shown == prompt, f"the begun answer in the template: {shown!r}")
    check(s.post("/apply-template", {"messages": begun})[1]["prompt"] == prompt, "a begun answer is not continued by itself")
    apart = s.post("/apply-template", {"messages": begun, "continue_final_message": False})[1]["prompt"]
    check(apart.endswith("Once upon<|im_end|>\n<|im_start|>assistant\n"), f"an answer after an answer: {apart!r}")
    status, thought = s.post("/v1/chat/completions", dict(plain, messages=messages[:1], reasoning_effort="low"))
    check(status == 200, f"reasoning_effort: {thought}")
    check(status == 200 and more["choices"][0]["message"]["content"] == text_of(s, prompt), "continuing the answer's beginning")


def prompts_alone(s):
    """No tokens are asked for: the prompt is computed, and kept for the next request."""
    for n, (path, key) in enumerate((("/completion", "n_predict"), ("/v1/completions", "max_tokens"), ("/v1/completions", "max_completion_tokens"))):
        prompt = f"{n} is warmed up before anybody asks"
        n_ids = len(s.post("/tokenize", {"content": prompt, "add_special": True})[1]["tokens"])
        status, answer = s.post(path, {"prompt": prompt, key: 0, "return_tokens": True, "logprobs": 1, "n_probs": 1, "stop": ["a", "b", "c"]})
        text, finish = (answer["content"], answer["stop_type"]) if path == "/completion" else (answer["choices"][0][k] for k in ("text", "finish_reason"))
        check(status == 200 and text == "" and finish in ("limit", "length"), f"{key} 0: {answer}")
        timings = answer["timings"]
        check((timings["prompt_n"] + timings["cache_n"], timings["predicted_n"]) == (n_ids, 0) and answer["drey"]["finish"] == "length", f"{key} 0: {answer}")
        check(timings["predicted_ms"] == answer["drey"]["tokens_per_s"] == 0, f"a speed of {key} 0: {answer}")
        later = s.post("/v1/completions", dict(plain, prompt=prompt))[1]
        check(later["usage"]["prompt_tokens_details"]["cached_tokens"] == n_ids - 1, f"after {key} 0: {later['usage']}")
        check(later["choices"][0]["text"] == text_of(s, prompt, cache_prompt=False), f"another text after {key} 0")
    body = {"messages": [{"role": "user", "content": "Nothing yet"}], "max_tokens": 0, "return_progress": True, "stream_options": {"include_usage": True}}
    status, events = s.stream("/v1/chat/completions", body)
    text, last = streamed(events)
    progress = [e["prompt_progress"] for e in events if isinstance(e, dict) and "prompt_progress" in e]
    check((text, last["choices"][0]["finish_reason"], events[-2]["usage"]["completion_tokens"]) == ("", "length", 0), f"a chat of no tokens: {events}")
    check(progress and progress[-1]["processed"] == progress[-1]["total"] == events[-2]["usage"]["prompt_tokens"], f"progress of no tokens: {progress}")
    # The same where the model's end is the first token.
    end = s.post("/tokenize", {"content": "<|im_end|>"})[1]["tokens"]
    events = s.stream("/v1/chat/completions", dict(body, max_tokens=5, cache_prompt=False, logit_bias={str(end[0]): 1e6}))[1]
    progress = [e["prompt_progress"] for e in events if isinstance(e, dict) and "prompt_progress" in e]
    check(streamed(events)[1]["choices"][0]["finish_reason"] == "stop" and progress[-1]["processed"] == progress[-1]["total"], f"an end at once: {events}")


def choices(s):
    status, answer = s.post("/v1/completions", dict(plain, prompt=prompts[0], n=3, temperature=1.5, seed=5))
    texts = [c["text"] for c in answer["choices"]]
    check(status == 200 and [c["index"] for c in answer["choices"]] == [0, 1, 2] and len(set(texts)) == 3, f"n: {answer}")
    for i in range(2):
        check(text_of(s, prompts[0], temperature=1.5, seed=5 + i) == texts[i], f"choice {i} is not the text of its seed")
    status, events = s.stream("/v1/completions", dict(plain, prompt=prompts[0], n=3, temperature=1.5, seed=5))
    got = ["", "", ""]
    for e in events:
        for c in e["choices"] if isinstance(e, dict) else []:
            got[c["index"]] += c["text"]
    check(got == texts, "n: other texts in a stream")
    wanted = run(drey, model, prompts[0], N, "--ignore-eos", "--temp", "0.9", "--top-k", "20", "--top-p", "0.9", "--min-p", "0.02", "--seed", "9")
    check(text_of(s, prompts[0], temperature=0.9, top_k=20, top_p=0.9, min_p=0.02, seed=9) == wanted, "sampling is not that of drey run")
    both = s.post("/v1/completions", {"prompt": "a", "max_completion_tokens": 3, "max_tokens": 9, "ignore_eos": True})[1]
    check(both["usage"]["completion_tokens"] == 3, f"max_completion_tokens: {both['usage']}")
    seeds = {s.post("/v1/completions", dict(plain, prompt="a", temperature=1))[1]["drey"]["seed"] for _ in range(3)}
    check(len(seeds) == 3, f"seeds without a seed: {seeds}")


def stops(s, text):
    word = next(text[i:i + 3] for i in range(5, N) if "\ufffd" not in text[i:i + 3])
    for stop in (word, ["nowhere", word]):
        got = text_of(s, prompts[0], stop=stop)
        check(got == text[:text.index(word)], f"stop {stop!r}: {got!r}")
        events = s.stream("/v1/completions", dict(plain, prompt=prompts[0], stop=stop))[1]
        check(streamed(events)[0] == got and streamed(events)[1]["choices"][0]["finish_reason"] == "stop", "stop in a stream")
    # Why a text ended: its own end (here a bias makes it the likeliest token), a stop text and
    # which, or its length.
    end = s.post("/tokenize", {"content": "<|im_end|>"})[1]["tokens"]
    native = {"prompt": prompts[0], "n_predict": N, "stop": ["nowhere", word]}
    for more, reason, which in (({"logit_bias": {str(end[0]): 1e6}}, "eos", ""), ({}, "word", word), ({"n_predict": 2}, "limit", "")):
        status, answer = s.post("/completion", dict(native, **more))
        check((answer["stop_type"], answer["stopping_word"]) == (reason, which), f"stop_type {reason}: {answer}")
        settings = answer["generation_settings"]
        check(settings["n_predict"] == dict(native, **more)["n_predict"] and settings["stop"] == native["stop"], f"settings: {settings}")
        check(answer["tokens"] == [] and answer["truncated"] is False, f"without return_tokens: {answer}")
        last = s.stream("/completion", dict(native, **more))[1][-1]
        check(last["stop"] and (last["stop_type"], last["stopping_word"]) == (reason, which), f"stop_type {reason} in a stream: {last}")


def logprobs(s):
    body = dict(plain, prompt=prompts[1], logprobs=3)
    status, whole = s.post("/v1/completions", body)
    lists = whole["choices"][0]["logprobs"]
    check([len(lists[k]) for k in ("tokens", "token_logprobs", "top_logprobs", "text_offset")] == [N] * 4, f"logprobs: {lists}")
    # Offsets count the characters in front of a token; a byte that is no UTF-8 is one of them in
    # the text.
    odd = next(i for i in range(256) if s.post("/detokenize", {"tokens": [i]})[1]["content"] == "\ufffd")
    forced = {"prompt": "a", "max_tokens": 4, "logprobs": 0, "logit_bias": {str(odd): 1e6}}
    broken = s.post("/v1/completions", forced)[1]["choices"][0]
    check((broken["text"], broken["logprobs"]["text_offset"]) == ("\ufffd" * 4, [0, 1, 2, 3]), f"offsets of broken UTF-8: {broken}")
    part, shown = broken["logprobs"]["bytes"][0], broken["logprobs"]["tokens"][0]
    check(len(part) == 1 and shown == f"bytes:\\x{part[0]:02x}", f"a token that is a part of a character: {broken}")
    events = s.stream("/v1/completions", forced)[1]
    offsets = [o for e in events if isinstance(e, dict) and e.get("choices") and e["choices"][0]["logprobs"] for o in e["choices"][0]["logprobs"]["text_offset"]]
    check(offsets == [0, 1, 2, 3], f"offsets of broken UTF-8 in a stream: {offsets}")
    events = s.stream("/v1/completions", body)[1]
    merged = {k: [] for k in lists}
    for e in events:
        for c in e["choices"] if isinstance(e, dict) else []:
            for k in lists if c["logprobs"] else []:
                merged[k] += c["logprobs"][k]
    check(merged == lists, "other logprobs in a stream")
    status, native = s.post("/completion", {"prompt": prompts[1], "n_predict": N, "ignore_eos": True, "n_probs": 3})
    probs = native["completion_probabilities"]
    check([p["logprob"] for p in probs] == lists["token_logprobs"], "other logprobs by /completion")
    check(all(len(p["top_logprobs"]) == 3 and p["top_logprobs"][0]["id"] == p["id"] for p in probs), f"top_logprobs: {probs[0]}")
    written = bytes(b for p in probs for b in p["bytes"])  # the text lacks special tokens
    check(re.sub(rb"<\|\w+\|>", b"", written).decode("utf-8", "replace") == native["content"], "bytes are not the text's")
    status, chat = s.post("/v1/chat/completions", dict(plain, messages=[{"role": "user", "content": "a"}], logprobs=True, top_logprobs=2))
    content = chat["choices"][0]["logprobs"]["content"]
    check(len(content) == N and all(len(c["top_logprobs"]) == 2 for c in content), f"chat logprobs: {content[:1]}")
    first = probs[0]["id"]
    for bias in ({str(first): False}, [[first, -1e9]], {probs[0]["token"]: False}):
        status, other = s.post("/completion", {"prompt": prompts[1], "n_predict": N, "ignore_eos": True, "return_tokens": True, "logit_bias": bias})
        check(status == 200 and first not in other["tokens"] if "\ufffd" not in probs[0]["token"] else status == 200, f"logit_bias {bias}: {other}")
    status, forced = s.post("/completion", {"prompt": prompts[1], "n_predict": 5, "return_tokens": True, "logit_bias": {"70": 100000}})
    check(forced["tokens"] == [70] * 5, f"logit_bias: {forced}")


def others(s):
    status, models = s.post("/tokenize", {"content": "Hello world", "add_special": False})
    ids = models["tokens"]
    check(s.post("/detokenize", {"tokens": ids})[1] == {"content": "Hello world"}, "detokenize")
    pieces = s.post("/tokenize", {"content": "Hello world", "with_pieces": True})[1]["tokens"]
    check("".join(p["piece"] for p in pieces) == "Hello world" and [p["id"] for p in pieces] == ids, f"pieces: {pieces}")
    # A text that fills the context; one token, which has no speed; the number that a log names.
    full = s.post("/completion", {"prompt": "a", "ignore_eos": True})[1]
    check(full["truncated"] and full["stop_type"] == "limit" and full["tokens_evaluated"] + full["tokens_predicted"] == 256, f"a full context: {full}")
    status, headers, text = s.request("POST", "/v1/completions", {"prompt": "a", "max_tokens": 1, "ignore_eos": True})
    one = json.loads(text)
    check(one["timings"]["predicted_n"] == 1 and one["timings"]["predicted_per_second"] == 0, f"one token's speed: {one['timings']}")
    check(headers["X-Request-Id"] == one["id"] and one["model"] == "toy", f"the request's number: {headers}")
    by_ids = s.post("/v1/completions", dict(plain, prompt=ids))[1]["choices"][0]["text"]
    check(by_ids == text_of(s, "Hello world"), "a prompt in ids")
    check(s.post("/completion", {"prompt": [ids[0], "ello", *ids[5:]], "n_predict": 5})[0] == 200, "a mixed prompt")
    check(json.loads(s.get("/v1/models/t%6Fy")[1])["id"] == "toy" and s.get("/v1/models/to%2Fy")[0] == 404, "a model's name in percents")
    models = json.loads(s.get("/v1/models")[1])
    check(models["data"][0]["id"] == "toy" and json.loads(s.get("/v1/models/toy")[1])["id"] == "toy", f"models: {models}")
    slots = json.loads(s.get("/slots")[1])
    check(len(slots) == 3 and not any(x["is_processing"] for x in slots), f"slots: {slots}")
    props = json.loads(s.get("/props")[1])
    check(props["total_slots"] == 3 and props["default_generation_settings"]["n_ctx"] == 256, f"props: {props}")
    prompt = s.post("/apply-template", {"messages": [{"role": "user", "content": "Hi"}]})[1]["prompt"]
    check(prompt.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"), f"template: {prompt}")
    # Without the words that begin an answer.
    bare = {"messages": [{"role": "user", "content": "Hi"}], "add_generation_prompt": False}
    shown = s.post("/apply-template", bare)[1]["prompt"]
    check(shown + "<|im_start|>assistant\n" == prompt, f"template without an answer's beginning: {shown!r}")
    status, answer = s.post("/v1/chat/completions", dict(plain, **bare))
    check(status == 200 and answer["choices"][0]["message"]["content"] == text_of(s, shown), "a chat without an answer's beginning")
    status, headers, body = s.request("GET", "/")
    check(status == 200 and b"<html" in body and "sha256-" in headers["Content-Security-Policy"], f"the page: {status} {headers}")
    status, headers, body = s.request("HEAD", "/health")
    check(status == 200 and body == b"" and int(headers["Content-Length"]) > 0, "HEAD")


def metrics(s):
    text = s.get("/metrics")[1].decode()
    names = {line.split("{")[0].split()[0] for line in text.splitlines() if not line.startswith("#")}
    for line in text.splitlines():
        check(re.match(r"(# (HELP|TYPE) [a-z_]+:[a-z_]+ .*|[a-z_]+:[a-z_]+(\{[a-z]+=\"[a-z0-9]+\"\})? [0-9.e+-]+)$", line), f"metrics: {line}")
    for name in ("llamacpp:tokens_predicted_total", "llamacpp:spec_decode_num_accepted_tokens_total", "drey:budget_bytes", "drey:cancelled_total"):
        check(name in names, f"metrics lack {name}")
    check(s.metric("llamacpp:tokens_predicted_total") > 1000, "tokens were not counted")


def kept_beginnings():
    """Beginnings come back, in another session and after a restart; the text stays."""
    options = ("-d", "none", "-c", "512", "--sessions", "2", "--prefix-memory", "2M", "--prefix-folder", f"{folder}/kept")
    prompt = "".join(chr(97 + i * i % 26) for i in range(200))
    wanted = run(drey, model, prompt, N, "--ignore-eos")
    for start in range(2):
        s = Server(drey, model, *options).wait_ready()
        for slot in range(2):
            status, answer = s.post("/v1/completions", dict(plain, prompt=prompt, id_slot=slot))
            cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
            check(status == 200 and answer["choices"][0]["text"] == wanted, f"start {start}, slot {slot}: another text")
            check((cached >= 64) == (start + slot > 0), f"start {start}, slot {slot}: {cached} tokens came back")
            check(answer["timings"]["cache_n"] + answer["timings"]["prompt_n"] == answer["usage"]["prompt_tokens"], f"timings: {answer['timings']}")
        check(s.metric("drey:prefix_damaged_files_total") == 0 and "damaged" not in s.errors(), "damage where there is none")
        check(s.metric("drey:prefix_copied_tokens_total") >= 64, "copied tokens were not counted")
        check((s.metric("drey:prefix_restored_tokens_total") >= 64) == (start == 1), "restored tokens were not counted")
        check(s.stop() == 0, "the server's end")
        kept = rf"beginnings of texts are kept in {re.escape(folder)}/kept" + (r", a new folder: 0" if start == 0 else r": [1-9][0-9.]*[KM]") + r" of 1\.00G \(--prefix-disk\)"
        check(sum(re.fullmatch(kept, line) is not None for line in s.lines()) == 1, f"where beginnings are kept: {s.lines()}")
    # Files that were damaged are not used, and that is said.
    for name in os.listdir(f"{folder}/kept"):
        if name.endswith(".kept"):
            with open(f"{folder}/kept/{name}", "r+b") as f:
                f.seek(-9, os.SEEK_END)
                byte = f.read(1)
                f.seek(-9, os.SEEK_END)
                f.write(bytes([byte[0] ^ 1]))
    s = Server(drey, model, *options).wait_ready()
    answer = s.post("/v1/completions", dict(plain, prompt=prompt))[1]
    check(answer["choices"][0]["text"] == wanted and answer["usage"]["prompt_tokens_details"]["cached_tokens"] == 0, f"damaged files: {answer}")
    for _ in range(200):
        if "were damaged" in s.errors():
            break
        time.sleep(0.05)
    check(s.errors().count("were damaged") == 1 and s.metric("drey:prefix_damaged_files_total") >= 1, f"damaged files: {s.errors()}")
    check(s.stop() == 0, "the end after damage")


def parts_of_beginnings():
    """Tests where a prompt begins to differ from what was known, at any token, and who knew it."""
    options = ("-d", "none", "-c", "512", "--sessions", "2", "--prefix-memory", "2M", "--prefix-folder", f"{folder}/parts")
    said = [{"role": "system", "content": "abcdefghij" * 8}, {"role": "user", "content": "klmnopqrst" * 4}, {"role": "assistant", "content": "first answer"}, {"role": "user", "content": "second question"}]
    other = said[:1] + [{"role": "user", "content": "klmnopqrst" * 2 + "K" * 20}] + said[2:]

    def ask(s, messages, **more):
        status, answer = s.post("/v1/chat/completions", dict(plain, messages=messages, max_tokens=4, **more))
        check(status == 200, f"beginnings: {answer}")
        prefix, cached = answer["drey"]["prefix"], answer["usage"]["prompt_tokens_details"]["cached_tokens"]
        check(prefix["tokens"] == cached == sum(prefix[k] for k in ("session", "other_session", "memory", "folder")), f"the sum of {prefix}")
        return answer["choices"][0]["message"]["content"], prefix

    s = Server(drey, model, *options).wait_ready()
    text, prefix = ask(s, said[:2])
    check(prefix["tokens"] == 0 and prefix["differs_at_message"] == 0, f"nothing was known: {prefix}")
    wanted, prefix = ask(s, other, cache_prompt=False, id_slot=1)
    check(prefix["tokens"] == 0, f"nothing may be used: {prefix}")
    _, prefix = ask(s, said, id_slot=0)
    check(prefix["differs_at_message"] == 2 and prefix["session"] >= 120, f"another turn: {prefix}")
    _, first = ask(s, other, id_slot=0)
    check(first["differs_at_message"] is None and first["other_session"] > 0, f"another session's text: {first}")
    check(s.stop() == 0, "the end")
    s = Server(drey, model, *options).wait_ready()
    third = said[:1] + [{"role": "user", "content": "klmnopqrst" * 2 + "L"}] + said[2:]
    _, prefix = ask(s, third)
    check(prefix["differs_at_message"] == 1 and prefix["folder"] == prefix["tokens"] == prefix["differs_at"] >= 80, f"of the folder: {prefix}")
    again, prefix = ask(s, other)
    check(again == wanted and prefix["folder"] > 0, f"after a restart: {prefix}")
    check(s.stop() == 0, "the end")


def slash():
    """A name with a slash, as written and in percents."""
    s = Server(drey, model, "-d", "none", "--sessions", "1", "-c", "64", "--alias", "org/toy,second").wait_ready()
    for name in ("org/toy", "org%2Ftoy", "org%2ft%6fy"):
        check(json.loads(s.get(f"/v1/models/{name}")[1]).get("id") == "org/toy", f"the model {name}")
    check([m["id"] for m in json.loads(s.get("/v1/models")[1])["data"]] == ["org/toy", "second"], "two names of the model")
    check(json.loads(s.get("/v1/models/second")[1])["id"] == "second", "the model by its second name")
    check(s.post("/completion", {"prompt": "a", "n_predict": 1, "model": "second"})[1]["model"] == "org/toy", "the model of an answer")
    for name in ("org", "org%252Ftoy", "org%2Ftoy%2F", "org/toy/"):
        check(s.get(f"/v1/models/{name}")[0] == 404, f"the model {name}")
    check(s.stop() == 0, "the end of the server with a slash")


def predictions(s, wanted):
    """The same text with a prediction that is right, wrong or too long; its tokens are counted."""
    for prompt, text in wanted.items():
        for content in (text, [{"type": "text", "text": text[:20]}, {"type": "text", "text": text[20:]}], "tree " * 400, ""):
            status, answer = s.post("/v1/completions", dict(plain, prompt=prompt, prediction={"type": "content", "content": content}))
            check(status == 200 and answer["choices"][0]["text"] == text, f"another text with a prediction: {answer}")
            details = answer["usage"].get("completion_tokens_details")
            check((details is None) == (content == ""), f"without a prediction: {answer['usage']}")
            if content == text:
                came, rest = details["accepted_prediction_tokens"], details["rejected_prediction_tokens"]
                check(came > 0 and rest >= 0 and came <= N, f"the prediction's tokens: {details}")
    for wrong in ("text", {"type": "content"}, {"type": "other", "content": "x"}, {"type": "content", "content": [{"type": "image"}]}):
        status, answer = s.post("/v1/completions", dict(plain, prompt="a", prediction=wrong))
        check(status == 400 and "prediction" in answer["error"]["message"], f"prediction {wrong}: {status} {answer}")


def main():
    wanted = {p: run(drey, model, p, N, "--ignore-eos") for p in prompts}
    for options in (("-d", draft, "--policy", "specinfer", "--sessions", "3", "-c", "256"), ("-d", "lookup", "--sessions", "2", "-c", "128")):
        s = Server(drey, model, *options).wait_ready()
        same_texts(s, wanted)
        same_texts_together(s, wanted)
        without_drafts(s, wanted)
        predictions(s, wanted)
        if "3" in options:
            chats(s)
            forms(s)
            conversations(s)
            prompts_alone(s)
            choices(s)
            stops(s, wanted[prompts[0]])
            logprobs(s)
            others(s)
            metrics(s)
        check(s.idle(), "sessions are busy at the end")
        code = s.stop()
        check(code == 0, f"the server ends with {code}: {s.errors()[-500:]}")


main()
slash()
kept_beginnings()
parts_of_beginnings()
done()
