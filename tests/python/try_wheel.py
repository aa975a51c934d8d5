"""The Python package on toys: texts are the command's, in pieces, in sessions, with asyncio; forms;
errors; statistics have what the header has.
    try_wheel.py DREY FOLDER      (FOLDER has target.gguf and draft.gguf)"""
import asyncio
import dataclasses
import json
import subprocess
import sys
import threading
import warnings

import drey
from drey._library import ffi

command, folder = sys.argv[1:]
target, draft = folder + "/target.gguf", folder + "/draft.gguf"
PROMPT = "A text begins"
common = {"memory": "200M", "threads": 1, "context": 512}


def run(*words):
    """The text of drey run, after the same prompt."""
    return subprocess.run([command, "run", "-q", "-m", target, "-d", "none", "-t", "1", "-p", PROMPT, "--ignore-eos",
                           *words], capture_output=True, check=True).stdout.decode(errors="replace")


def same_text():
    expected = run("-n", "24")
    for d in (None, draft, "lookup", "auto"):
        with drey.Model(target, draft=d, **common) as model:
            pieces = list(model.generate(PROMPT, max_tokens=24, ignore_eos=True))
            assert "".join(pieces) == expected, (d, pieces, expected)
            assert len(pieces) > 1
            s = model.statistics
            assert s.generated_tokens == 24 and s.finish == "length" and s.kv == "f16", s
            assert (s.accepted > 0) <= (d is not None)
            assert model.plan.budget_bytes == 200 << 20
            ids = model.tokenize(PROMPT)
            assert "".join(model.generate(ids, max_tokens=24, ignore_eos=True)) == expected
            seeded = drey.Sampling(temperature=0.8, top_k=40, seed=5)
            sampled = "".join(model.generate(PROMPT, max_tokens=24, ignore_eos=True, sampling=seeded))
            assert sampled == run("-n", "24", "--temp", "0.8", "--top-k", "40", "--seed", "5")


def numbers():
    """Tries numbers of drafting: the text is the same, but what bld lets pass."""
    expected = run("-n", "24")
    for options in ({"policy": "edgellm", "alpha": 0.3, "fallback": "printed", "fallback_step": 0.2},
                    {"policy": "llmcad", "ahead": 1.0}, {"policy": "bld", "bld_rollback": 0.001}):
        with drey.Model(target, draft=draft, **options, **common) as model:
            assert "".join(model.generate(PROMPT, max_tokens=24, ignore_eos=True)) == expected, options
    for options, kind in (({"ahead": 2.0}, drey.UsageError), ({"fallback": "none"}, drey.UsageError),
                          ({"draughts": 1.0}, drey.UsageError)):
        try:
            drey.Model(target, draft=draft, **options, **common)
        except kind as error:
            assert str(error)
        else:
            raise AssertionError(options)


def endings():
    text = run("-n", "24")
    stop = text[6:9]
    with drey.Model(target, draft=None, **common) as model:
        got = "".join(model.generate(PROMPT, max_tokens=24, ignore_eos=True, stop=[stop]))
        assert got == text[:text.index(stop)] and model.statistics.finish == "stop", (got, text, stop)
        for _ in model.generate(PROMPT, max_tokens=24, ignore_eos=True):
            break
        assert model.statistics.finish == "interrupted"
        written = []
        for piece in model.generate(PROMPT, max_tokens=400, ignore_eos=True):
            written.append(piece)
            if len(written) == 3:
                model.cancel()
        assert 3 <= len(written) < 400 and model.statistics.finish == "interrupted"


def sessions():
    """Two at the same time write what each alone does; a third has no room."""
    with drey.Model(target, draft=draft, sessions=2, **common) as model:
        alone = ["".join(model.generate(p, max_tokens=12, ignore_eos=True)) for p in ("One", "Two")]
        model._usual.close()
        model._usual = None
        with model.session() as a, model.session() as b:
            texts = ["", ""]
            for x, y in zip(a.generate("One", max_tokens=12, ignore_eos=True),
                            b.generate("Two", max_tokens=12, ignore_eos=True)):
                texts[0] += x
                texts[1] += y
            assert alone[0].startswith(texts[0]) and alone[1].startswith(texts[1]) and texts[0]
            try:
                model.session()
                raise AssertionError("a third session")
            except drey.UsageError:
                pass


def asynchronous():
    async def both():
        with drey.Model(target, draft=None, sessions=2, **common) as model:
            async def one(prompt):
                session, ticks = model.session(), []
                return "".join([piece async for piece in session.agenerate(prompt, max_tokens=24,
                                                                                ignore_eos=True)])
            return await asyncio.gather(one(PROMPT), one(PROMPT))
    assert asyncio.run(both()) == [run("-n", "24")] * 2

    async def own():
        with drey.Model(target, draft=None, **common) as model:
            return "".join([piece async for piece in model.agenerate(PROMPT, max_tokens=24, ignore_eos=True)])
    assert asyncio.run(own()) == run("-n", "24")


def forms():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
              "additionalProperties": False}
    with drey.Model(target, draft="lookup", **common) as model:
        for grammar, good in ((model.grammar(json_schema=schema), lambda t: list(json.loads(t)) == ["n"]),
                              (model.grammar(regex="[ab]{3}"), lambda t: len(t) == 3 and set(t) <= set("ab")),
                              (model.grammar(choices=["left", "right"]), lambda t: t in ("left", "right"))):
            text = "".join(model.generate(PROMPT, max_tokens=400, grammar=grammar))
            assert good(text), text
            form = {name: value for name, value in (("json_schema", schema), ("regex", "[ab]{3}"),
                                                    ("choices", ["left", "right"])) if name in repr(grammar)}
            assert model.complete(PROMPT, max_tokens=400, **form) == text and len(form) == 1, form
            assert model(PROMPT, max_tokens=400, **form)["choices"][0]["text"] == text
            assert grammar.not_held == [], grammar.not_held
        unique = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
        grammar = model.grammar(json_schema={"type": "object", "properties": {"a": unique, "b": unique}})
        assert grammar.not_held == ["/properties/a/uniqueItems", "/properties/b/uniqueItems"], grammar.not_held
        text = "".join(model.chat([{"role": "user", "content": "<|im_end|> is text"}], max_tokens=4)) \
            if model_has_template(model) else ""
        assert isinstance(text, str)
        if model_has_template(model):  # a last message of the assistant begins the answer
            asked = [{"role": "user", "content": "a"}]
            begun = model.tokenize_chat([*asked, {"role": "assistant", "content": "Hello"}])
            alone = model.tokenize_chat(asked)
            assert begun[:len(alone)] == alone and len(begun) > len(alone), (begun, alone)
            assert model.detokenize(begun[len(alone):]) == "Hello", begun


def model_has_template(model):
    try:
        model.tokenize_chat([{"role": "user", "content": "a"}])
        return True
    except drey.UnsupportedError:
        return False


def errors():
    with drey.Model(target, draft=None, **common) as model:
        for call, kind in ((lambda: model.grammar(regex="("), drey.UsageError),
                           (lambda: model.grammar(), drey.UsageError),
                           (lambda: model.grammar(json_schema={"not": {"format": "date"}}, strict=True), drey.UsageError),
                           (lambda: list(model.generate("a " * 2000)), drey.ContextError),
                           (lambda: list(model.generate([1 << 30])), drey.UsageError),
                           (lambda: drey.Model(folder + "/none"), drey.IOFailure),
                           (lambda: drey.Model(target, memory="1K"), drey.MemoryBudgetError),
                           (lambda: drey.Model(target, memory="much"), drey.UsageError),
                           (lambda: drey.Model(target, policy="none such"), drey.UsageError),
                           (lambda: drey.Model(target, draft=__file__), drey.FormatError)):
            try:
                call()
            except kind as error:
                assert str(error)
            else:
                raise AssertionError("no %s" % kind.__name__)
        assert "".join(model.generate(PROMPT, max_tokens=4, ignore_eos=True)) == run("-n", "4")


def structures():
    """The dataclasses have every member of the structures."""
    for kind, name, without in ((drey.Statistics, "drey_statistics", {"zero"}), (drey.Plan, "drey_plan", {"speeds"})):
        members = {m for m, _ in ffi.typeof(name).fields if m != "reserved"} - without
        assert {f.name for f in dataclasses.fields(kind)} - {"verdict"} == members, name
    plan = drey.plan(target, draft=None, **common)
    assert plan.target_bytes > 0 and str(plan).startswith(plan.verdict + "\nmemory plan: ")
    with drey.Model(target, draft=None, **common) as model:
        assert "stays in memory" in model.verdict and model.verdict.startswith("target, ")
        expected = "About %.0f tokens/s" % model.plan.expected_tokens_per_s
        assert expected in model.verdict or "tokens/s" not in model.verdict, model.plan
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        drey.plan(target, draft=None, memory=1 << 49)
    assert ["the budget of 512T is more than" in str(w.message) for w in said] == [True], said
    assert said[0].category is UserWarning and said[0].filename == __file__, said[0]


for test in (structures, same_text, numbers, endings, sessions, asynchronous, forms, errors):
    test()
assert threading.active_count() < 8
