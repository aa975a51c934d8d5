"""OpenAI's dicts of the Python package are the answers of drey serve to the same requests: texts,
tool calls, reasoning, schemas, log probabilities, chunks, embeddings. And what goes around them:
complete, options in the call, progress, files of sessions.
    try_openai.py DREY FOLDER      (FOLDER has target.gguf and draft.gguf)"""
import contextlib
import inspect
import io
import json
import os
import sys
import warnings

import drey

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../serve"))
from serve_client import Server

command, folder = sys.argv[1:]
target = folder + "/target.gguf"
common = {"draft": None, "memory": "200M", "threads": 1, "context": 1024}
ASKED = [{"role": "user", "content": "Weather in Paris?"}]
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}, "days": {"type": "integer", "maximum": 9}},
    "required": ["city"], "additionalProperties": False}}}
AGE = {"type": "object", "properties": {"age": {"type": "integer", "maximum": 9}}, "required": ["age"],
       "additionalProperties": False}
CALL = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Rome\"}"}}
CHATS = [
    {"messages": ASKED},
    {"messages": [{"role": "developer", "content": "Be brief."}, *ASKED], "temperature": 0.8, "seed": 7, "top_k": 40},
    {"messages": ASKED, "stop": ["a", "e"], "repeat_penalty": 1.3, "presence_penalty": 0.5},
    {"messages": ASKED, "logprobs": True, "top_logprobs": 2, "logit_bias": {"5": 4}},
    {"messages": ASKED, "tools": [WEATHER], "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 200},
    {"messages": ASKED, "tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "weather"}}},
    {"messages": ASKED, "tools": [WEATHER]},
    {"messages": [*ASKED, {"role": "assistant", "content": None, "tool_calls": [CALL]},
                  {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "sunny"}]}],
     "tools": [WEATHER], "tool_choice": "none"},
    {"messages": ASKED, "max_tokens": 200, "response_format": {"type": "json_schema", "json_schema": {"schema": AGE}}},
    {"messages": [*ASKED, {"role": "assistant", "content": "It is"}]},
]
PROMPTS = [{"prompt": "A text begins"}, {"prompt": "A text", "echo": True, "logprobs": 2},
           {"prompt": [1, 2, 3], "temperature": 1, "seed": 3, "frequency_penalty": 0.4},
           {"prompt": "A text", "logprobs": 0, "stop": "e"}, {"prompt": [7], "echo": True, "logprobs": 1},
           {"prompt": "A text", "echo": True, "logprobs": 1, "max_tokens": 0}]


def plain(answer):
    """Returns an answer without what differs from one to the next, and with floats as JSON had
    them."""
    if isinstance(answer, dict):
        return {key: plain(value) for key, value in answer.items() if key in KEPT or key in ("top_logprobs",)}
    return [plain(one) for one in answer] if isinstance(answer, list) else answer


KEPT = {"object", "choices", "index", "message", "delta", "role", "content", "reasoning_content", "tool_calls", "type",
        "function", "name", "arguments", "finish_reason", "usage", "prompt_tokens", "completion_tokens", "total_tokens",
        "text", "data", "embedding", "token", "bytes", "tokens", "text_offset"}


def logprobs(answer):
    """All numbers below "logprobs", in their order."""
    if isinstance(answer, float):
        return [answer]
    parts = answer.values() if isinstance(answer, dict) else answer if isinstance(answer, list) else ()
    return [number for part in parts for number in logprobs(part)]


@contextlib.contextmanager
def server():
    s = Server(command, target, "-d", "none", "-c", "1024")
    try:
        yield s.wait_ready()
    finally:
        s.stop()


def like_the_server():
    with drey.Model(target, **common) as model, server() as s:
        calls = 0
        for path, requests, ask in (("/v1/chat/completions", CHATS, model.create_chat_completion),
                                    ("/v1/completions", PROMPTS, model)):
            for request in requests:
                request = {"max_tokens": 24, **request}
                status, theirs = s.post(path, request)
                ours = ask(**request)
                assert status == 200 and plain(ours) == plain(theirs), (request, ours, theirs)
                assert json.loads(json.dumps(ours)) == ours
                pairs = list(zip(logprobs(ours), logprobs({"choices": theirs["choices"]})))
                assert all(abs(a - b) < 1e-5 for a, b in pairs), pairs
                assert bool(pairs) == ("logprobs" in request)
                message = ours["choices"][0].get("message", {})
                calls += len(message.get("tool_calls", ()))
                more = {"stream_options": {"include_usage": True}} if message else {}
                chunks = list(ask(**request, stream=True, **more))
                assert put_together(chunks) == message_of(ours), (request, chunks)
        assert calls > 0
        theirs = s.post("/v1/embeddings", {"input": ["One", "two three"]})[1]
        ours = model.create_embedding(["One", "two three"])
        assert ours["usage"] == theirs["usage"]
        assert [len(d["embedding"]) for d in ours["data"]] == [model.info.n_embd] * 2
        for a, b in zip(ours["data"], theirs["data"]):
            assert max(abs(x - y) for x, y in zip(a["embedding"], b["embedding"])) < 1e-6
        assert model.embed("One") == ours["data"][0]["embedding"]
        assert len(model.embed("two three", pooling="none")) == len(model.tokenize("two three"))


def message_of(answer):
    choice = answer["choices"][0]
    message = choice.get("message") or {"content": choice["text"]}
    return (message["content"] or "", message.get("reasoning_content", ""),
            [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls", ())],
            choice["finish_reason"])


def put_together(chunks):
    content = reasoning = ""
    calls, finish = [], None
    for chunk in chunks:
        for choice in chunk["choices"]:
            delta = choice.get("delta") or {"content": choice.get("text")}
            content += delta.get("content") or ""
            reasoning += delta.get("reasoning_content") or ""
            for call in delta.get("tool_calls", ()):
                if "id" in call:
                    calls.append([call["function"]["name"], ""])
                calls[call["index"]][1] += call["function"]["arguments"]
            assert finish is None
            finish = choice["finish_reason"]
    return content, reasoning, [tuple(call) for call in calls], finish


def whole_texts():
    """complete is what generate and chat yield; options in the call are those of a Sampling."""
    with drey.Model(target, **common) as model:
        options = {"temperature": 0.8, "top_k": 40, "seed": 5, "max_tokens": 12}
        text = model.complete("One", **options)
        assert text.finish in ("length", "stop") and text.statistics == model.statistics
        given = {name: options[name] for name in ("temperature", "top_k", "seed")}
        for sampling in (drey.Sampling(**given), given):
            assert "".join(model.generate("One", max_tokens=12, sampling=sampling)) == text
        assert model.complete("One", sampling=drey.Sampling(seed=4), **options) == text
        assert len({model.complete("One", **{**options, "seed": None}) for _ in range(8)}) > 1
        chat = model.complete(ASKED, max_tokens=9)
        assert chat == "".join(model.chat(ASKED[0]["content"], max_tokens=9))
        answer = model.create_chat_completion(ASKED, max_completion_tokens=9, model="any")
        assert chat == answer["choices"][0]["message"]["content"]
        assert model.complete("One", max_tokens=None, ignore_eos=True).statistics.generated_tokens > 900
        form = {"type": "json_schema", "json_schema": {"schema": AGE}}
        assert json.loads(model.complete("One", max_tokens=200, response_format=form))
        for of in ({"json_schema": AGE}, {"choices": ["7"]}):
            held = model.create_chat_completion(ASKED, max_tokens=200, **of)
            assert json.loads(held["choices"][0]["message"]["content"]), held
            assert json.loads("".join(model.chat(ASKED, max_tokens=200, **of)))
        shown = inspect.signature(model.generate).parameters
        assert shown["temperature"].default == 0.0 and "options" not in shown, shown
        assert inspect.signature(model.chat).parameters["max_tokens"].default is None
        assert "temperature" in inspect.signature(model.achat).parameters


def sessions_in_files():
    with drey.Model(target, sessions=2, **common) as model, model.session() as a, model.session() as b:
        text = a.complete("A long text that begins", max_tokens=20)
        a.save(folder + "/saved")
        b.load(folder + "/saved")
        assert b.tokens == a.tokens and len(a.tokens) > 20
        again = b.complete("A long text that begins", max_tokens=20)
        assert again == text and again.statistics.cached_tokens > 5
        b.reset()
        assert b.tokens == []


def said():
    """Progress, plans, statistics, warnings and errors in words."""
    seen = []
    with drey.Model(target, progress=lambda *what: seen.append(what), **common) as model:
        model.warm_up()
        assert any(what == "load target" and done == total > 0 for what, done, total in seen), seen
        assert model.tokens == [] and "\nmemory plan: budget 200M" in str(model.plan), str(model.plan)
        assert len(str(model.statistics).splitlines()) == 2 and "tokens_per_s=" in repr(model.statistics)
        assert "target" in repr(model) and "target" in repr(model._session())
        assert "choices" in repr(model.grammar(choices=["a"]))

        def fails(*_):
            raise KeyError("mine")
    with drey.Model(target, progress=fails, **common) as model:
        try:
            model.complete("One")
            raise AssertionError("progress failed in silence")
        except KeyError:
            pass
    shown = io.StringIO()
    with contextlib.redirect_stderr(shown), drey.Model(target, verbose=True, **common) as model:
        model.complete("One", max_tokens=3)
    assert "memory plan" in shown.getvalue() and "3 tokens" in shown.getvalue(), shown.getvalue()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with drey.Model(target, **{**common, "context": 10 ** 5, "memory": "unlimited"}) as model:
            assert model.plan.n_context == 10 ** 5
            assert "100000" in str(warned[0].message) and __file__ == warned[0].filename
    try:
        drey.Model(target + ".not")
        raise AssertionError("a file that is not there was opened")
    except FileNotFoundError as error:
        assert ".gguf.not" in str(error), error
    with drey.Model(target, **common) as model:
        for call, words in ((lambda: drey.Model(target, n_ctx=5), "context="),
                            (lambda: drey.Model(model_path=target), "target="),
                            (lambda: drey.Model(target, seed=1), "with each text"), (lambda: drey.Model(), "missing"),
                            (lambda: model.generate("a", temp=1), "temperature="),
                            (lambda: model("a", n_predict=1), "max_tokens="),
                            (lambda: model.chat("a", n_ctx=1), "model opens"),
                            (lambda: model.complete("a", tempratur=1), "temperature="),
                            (lambda: model.generate("a", sampling={"topp": 1}), "top_p="),
                            (lambda: model.grammar(json_schma={}), "json_schema="),
                            (lambda: model.complete("a", json_schma={}), "json_schema="),
                            (lambda: model.complete("a", regex="a", choices=["a"]), "regex and choices both"),
                            (lambda: model.create_chat_completion("a", json_schema={}, gbnf="root ::= 1"), "both say"),
                            (lambda: drey.Model(target, memory="much"), "'much'"),
                            (lambda: drey.Model(target, memory="2"), 'is 2 bytes; did you mean "2G"?'),
                            (lambda: drey.Model(target, memory="100"), 'did you mean "100M" or "100G"?'),
                            (lambda: drey.Model(target, memory=2.5), '"2.5G"'),
                            (lambda: drey.Model(target, memory=True), '"auto"'),
                            (lambda: drey.Model(target, memory=None), '"auto"'),
                            (lambda: drey.Model(target, memory=0), '"auto"'),
                            (lambda: drey.Model(target, policy="x"), "edgellm"),
                            (lambda: model.complete("a", temperature="hot"), "temperature is a number, not 'hot'"),
                            (lambda: model.complete("a", top_k=2.5), "top_k is a whole number, not 2.5"),
                            (lambda: model.embed(""), "the text is empty"),
                            (lambda: model.complete("a", 3), "max_tokens=3"),
                            (lambda: model.complete("a", logprobs=2), "create_completion"),
                            (lambda: model.create_chat_completion("a", top_logprobs=2), "logprobs=True"),
                            (lambda: model.chat(5), '"role"'),
                            (lambda: model.generate([{"role": "user", "content": "a"}]), "messages are for chat"),
                            (lambda: model.create_chat_completion("a", response_format={
                                "type": "json_object", "json_schema": {"type": "object"}}), "no schema"),
                            (lambda: [model.complete("a", max_tokens=1), model.session()], "sessions=2")):
            try:
                call()
            except drey.UsageError as error:
                assert words in str(error), error
            else:
                raise AssertionError(words)
        assert model.tokenize(b"One") == model.tokenize("One")
        assert model.complete(b"One", max_tokens=3) == model.complete("One", max_tokens=3)
        for name, here in (("save_state", "save(path)"), ("n_ctx", "plan.n_context"), ("tokenizer", "tokenize(text)")):
            try:
                getattr(model, name)
                raise AssertionError(name)
            except AttributeError as error:
                assert here in str(error), error
    assert set(drey.TextOptions.__annotations__) == set(drey._names.WRITING)
    sizes = [drey._sizes.memory_bytes(size) for size in ("2GB", "2 G", "2GiB", " 2048 mb", 2 << 30)]
    assert sizes == [2 << 30] * 5 and 0 < drey._sizes.memory_bytes("50%") < drey._sizes.memory_bytes(1.0)


for test in (like_the_server, whole_texts, sessions_in_files, said):
    test()
