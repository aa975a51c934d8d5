"""Models, sessions, texts and grammars that are used after they were closed, closed while they are
used, dropped in any order, by several threads, after a fork and at the interpreter's end: each call
is right or a drey.UsageError. Every public method and property is called, found by what the classes
have, so that a new one is covered by itself.
    try_closing.py FOLDER      (FOLDER has target.gguf)"""
import asyncio
import faulthandler
import gc
import inspect
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time

import drey

faulthandler.enable()
folder = sys.argv[1]
target = folder + "/target.gguf"
common = {"draft": None, "memory": "200M", "threads": 1, "context": 512}
LONG = {"max_tokens": 400, "ignore_eos": True}
# Arguments that methods require, by their names.
GIVEN = {"prompt": "One", "messages": [{"role": "user", "content": "One"}], "text": "One", "ids": [1], "target": target,
         "input": "One", "path": folder + "/saved", "self": None}
FORM = {"regex": "[ab]+"}  # of grammar, which requires one of several
# Attributes that a closed object still has.
STAYS = {"close", "aclose", "closed", "statistics", "why", "info", "verdict"}


def opened(**options):
    return drey.Model(target, **{**common, "sessions": 3, **options})


def text(model, n=8):
    return "".join(model.generate("One", max_tokens=n, ignore_eos=True))


def refused(call):
    """Returns true if a call is a UsageError that says something. Other errors are faults."""
    try:
        used(call())
        return False
    except drey.UsageError as error:
        assert len(str(error)) > 10, error
        return True


def used(value):
    """Takes what a call returned: texts are begun."""
    if inspect.iscoroutine(value):
        used(asyncio.run(value))
    elif hasattr(value, "__anext__"):
        async def first():
            async for _ in value:
                break
            await value.aclose()
        asyncio.run(first())
    elif hasattr(value, "__next__"):
        next(value, None)
        value.close()
    elif hasattr(value, "close"):
        value.close()


def members(thing):
    """{name: a call of it}, of each public method and property that is about an object, and of
    `with`, `next` and calls."""
    calls = {}
    for name in dir(type(thing)):
        if name.startswith("_") and name not in ("__enter__", "__next__", "__anext__", "__call__"):
            continue
        found = inspect.getattr_static(type(thing), name)
        if isinstance(found, (staticmethod, classmethod)):
            continue
        if not callable(found):
            calls[name] = lambda name=name: getattr(thing, name)
        elif name == "__anext__":
            async def once():
                return await thing.__anext__()
            calls[name] = lambda: asyncio.run(once())
        else:
            calls[name] = lambda name=name, given=arguments(found): getattr(thing, name)(**given)
    return calls


def arguments(method):
    try:
        asked = inspect.signature(method).parameters.values()
    except ValueError:
        return {}  # of C
    wanted = [p.name for p in asked if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD][1:]
    assert set(wanted) <= set(GIVEN), "GIVEN has no argument for %s" % wanted
    return {**{name: GIVEN[name] for name in wanted}, **(FORM if method is drey.Model.grammar else {})}


class Things:
    """One of each class, with texts in the middle."""

    def __init__(self):
        self.model = opened()
        self.session = self.model.session()
        self.grammar = self.model.grammar(regex="[ab]+")
        self.of_model = self.model.generate("One", grammar=self.grammar, max_tokens=400)
        self.of_session = self.session.generate("Two", **LONG)
        self.later = self.session.generate("Three", **LONG)  # has not begun
        for begun in (self.of_model, self.of_session):
            assert next(begun)

    NAMES = "model", "session", "grammar", "of_model", "of_session"
    OF = {"model": {"model", "session", "grammar", "of_model", "of_session", "later"},
          "session": {"session", "of_session", "later"}, "grammar": {"grammar"}}

    def engine(self):
        return self.model._engine


def permutations():
    """Each member of each class, after each step of closing in each order."""
    n, classes = 0, {drey.Model: "model", drey.Session: "session", drey.Grammar: "grammar"}
    public = {c for c in vars(drey).values() if inspect.isclass(c) and hasattr(c, "close")}
    public.remove(drey.Stream)  # a closed one has ended, as Python's iterators do
    assert public == set(classes), "Things has none of %s" % (public - set(classes))
    for order in itertools.permutations(Things.NAMES):
        things, closed = Things(), set()
        for name in order:
            getattr(things, name).close()
            closed |= Things.OF.get(name, set())
            for other in closed & set(classes.values()):
                for member, call in members(getattr(things, other)).items():
                    assert refused(call) or member in STAYS, (order, other, member)
                    n += 1
            if "grammar" in closed and "model" not in closed:
                assert refused(lambda: things.model.generate("One", grammar=things.grammar))
        for later in (things.later, things.session.agenerate) if "model" not in closed else ():
            assert refused(lambda: next(later))
        assert things.engine()._freed.wait(10), order
    assert n > 3000, n


def texts_after():
    """A text whose session or model was closed says so, begun or not; what ended well has ended."""
    for close in ("model", "session"):
        things = Things()
        whole = things.model.generate("One", max_tokens=3) if close == "session" else None
        waiting = things.session.agenerate("Two", **LONG)
        getattr(things, close).close()
        assert refused(lambda: next(things.of_session)) and refused(lambda: next(things.later))
        assert refused(lambda: asyncio.run(_first(waiting)))
        if close == "model":
            assert refused(lambda: next(things.of_model))
            assert things.engine()._freed.is_set()
        else:
            things.of_model.close()
            assert "".join(whole)
            assert "the session is closed" in said(lambda: next(things.session.generate("a")))
        things.model.close()
        assert "the model is closed" in said(lambda: things.session.cancel())


async def _first(pieces):
    return await pieces.__anext__()


def said(call):
    try:
        call()
    except drey.UsageError as error:
        return str(error)
    raise AssertionError("no error")


def grammars():
    """A closed one is refused, and one of another model, which is freed; a text keeps its own."""
    with opened() as model, opened() as other:
        held = model.grammar(regex="(ab){30}c")
        pieces = model.generate("One", max_tokens=400, grammar=held)
        start = next(pieces)
        held.close()
        assert not held._freed.is_set()
        assert "the grammar is closed" in said(lambda: model.generate("One", grammar=held))
        assert start + "".join(pieces) == "ab" * 30 + "c" and held._freed.is_set()
        waiting = model.generate("One", grammar=(late := model.grammar(regex="a")))
        late.close()
        assert "the grammar is closed" in said(lambda: next(waiting))
        foreign = other.grammar(choices=["yes", "no"])
        assert "another model" in said(lambda: model.generate("One", grammar=foreign))
        other.close()
        assert foreign._freed.is_set()
        assert "another model" in said(lambda: model.generate("One", grammar=foreign))
        shared = model.grammar(regex="[ab]{20}")
        first = model.generate("One", grammar=shared)
        next(first)
        with model.session() as session:
            assert "another text is being written with this grammar" in said(
                lambda: next(session.generate("One", grammar=shared)))
        assert len("".join(first)) < 20


def busy():
    """A second text in a session that writes is refused, and the first continues. One that was left
    is not in the way, however it was left."""
    with opened(sessions=1) as model:
        right, other = text(model), "".join(model.generate("Two", max_tokens=8, ignore_eos=True))
        first = model.generate("One", max_tokens=8, ignore_eos=True)
        start, second = next(first), model.generate("Two", max_tokens=8, ignore_eos=True)
        why = said(lambda: next(second))
        assert "sessions=2" in why and "model.session()" in why, why
        assert "sessions=2" in said(model.session)
        assert start + "".join(first) == right and model.statistics.finish == "length"
        for leave in ("close", "del", "again", "cycle", "error"):
            left = model.generate("One", **LONG)
            next(left)
            if leave == "close":
                left.close()
            elif leave == "again":
                left = model.generate("Two", max_tokens=8, ignore_eos=True)
                assert "".join(left) == other
            elif leave == "cycle":
                left = [left]
                left.append(left)
            elif leave == "error":
                try:
                    with left:
                        raise KeyError
                except KeyError:
                    pass
            if leave in ("del", "cycle"):
                del left
                gc.collect()
            assert text(model) == right, leave
        begun = [model.generate(p, max_tokens=8, ignore_eos=True) for p in ("One", "Two")]
        shown = repr(begun[0])
        assert ["".join(pieces) for pieces in begun] == [right, other]
        assert "generate(): not begun" in shown and "8 tokens, closed (length)" in repr(begun[0]), (shown, begun)
        begun = model.generate("One", **LONG)
        begun.cancel()  # before it has begun
        assert "".join(begun) == "" and model.statistics.finish == "interrupted"


def dropped():
    """Checks that what is no longer referred to gives its place and memory back, in any order."""
    for seed in range(24):
        things = Things()
        freed = things.engine()._freed
        parts = list(vars(things).values()) + [things.session.agenerate("Two")]
        if seed % 3 == 0:
            knot = {"parts": parts[:]}
            knot["knot"] = knot
            del knot
        del things
        random.Random(seed).shuffle(parts)
        while parts:
            parts.pop()
        gc.collect()
        assert freed.wait(10), seed
    with opened(sessions=1) as model:
        for _ in range(4):
            session = model.session()
            next(session.generate("One", **LONG))
            del session


def by_other_threads():
    """Closed, cancelled and asked for more by threads while one writes."""
    for seed in range(30):
        model, rng = opened(), random.Random(seed)
        session, faults = model.session(), []
        grammar = model.grammar(regex="[ab]+")

        def work(calls):
            try:
                for call in calls:
                    refused(call)
            except BaseException as error:
                faults.append(error)

        def write(of, options):
            for _ in of.generate("One", **options):
                pass

        threads = [threading.Thread(target=work, args=([lambda: write(session, LONG)] * 2,)),
                   threading.Thread(target=work, args=([lambda: write(model, {"grammar": grammar})] * 2,)),
                   threading.Thread(target=work, args=([session.cancel, lambda: model.plan, lambda: text(model, 2),
                                                        lambda: model.tokenize("a b c"),
                                                        lambda: model.grammar(choices=["a", "b"]),
                                                        lambda: model.create_chat_completion("One", max_tokens=2),
                                                        lambda: session.embed("One"), model.reset] * 8,))]
        for thread in threads:
            thread.start()
        closes = [session.close, model.close, grammar.close]
        rng.shuffle(closes)
        for close in closes:
            time.sleep(rng.random() * 0.01)
            close()
        assert model._engine._freed.is_set()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive(), seed
        assert not faults, faults


def by_signals():
    """A handler runs between any two lines of the package, also in the middle of a pass."""
    for seed in range(40):
        model = opened()
        session, rng = model.session(), random.Random(seed)

        def handler(*_):
            model.plan if rng.random() < 0.5 and not model.closed else None
            refused(lambda: next(session.generate("Two", max_tokens=2), None))
            rng.choice((model.close, session.close, session.cancel))()

        before = signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.0002 + rng.random() * 0.005)
        try:
            for _ in range(3):
                refused(lambda: [text(model), list(session.generate("One", **{**LONG, "max_tokens": 20}))])
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        model.close()
        assert model._engine._freed.wait(10), seed


def forked():
    """A child's use of what its parent opened is refused, whatever the parent does meanwhile. Its
    own model works, and its end frees nothing."""
    things = Things()
    right = text(opened())
    writing = threading.Thread(target=lambda: refused(lambda: list(things.of_session)))
    writing.start()
    for _ in range(4):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                signal.alarm(20)
                for thing in (things.model, things.session, things.grammar):
                    for member, call in members(thing).items():
                        assert member in STAYS or refused(call), member
                for pieces in (things.of_model, things.later):
                    assert refused(lambda: next(pieces))
                mine = opened()
                assert text(mine) == right
                assert refused(lambda: mine.generate("One", grammar=things.grammar))
                del things, pieces, thing, call
                gc.collect()
                mine.close()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
    things.session.cancel()
    writing.join(20)
    assert set("".join(things.of_model)) <= set("ab")
    things.model.close()
    assert things.engine()._freed.is_set()


def at_exit():
    """The interpreter ends with texts in the middle, and with a thread in the middle of a pass."""
    begin = "import sys, threading, time, atexit, drey\nm = drey.Model(%r, **%r)\n" % (target, {**common, "sessions": 2})
    for end in ("s = m.session(); g = s.generate('a'); next(g)",
                "g = m.generate('a', grammar=m.grammar(regex='[ab]+')); next(g); m = [m]; m.append(m)",
                "t = threading.Thread(target=lambda: list(m.generate('a', max_tokens=400, ignore_eos=True)), "
                "daemon=True); t.start(); time.sleep(.05)",
                "g = m.generate('a'); next(g); atexit.register(m.close)",
                "g = m.generate('a'); next(g); sys.exit(0)",
                "class C:\n  def __del__(self, g=m.generate('a')): next(g)\nc = C(); c.c = c"):
        run = subprocess.run([sys.executable, "-B", "-c", begin + end], capture_output=True, text=True, timeout=60)
        assert run.returncode == 0 and not run.stderr, (end, run)


def asynchronous():
    """Two texts of one session, tasks that are cancelled, loops that are left."""
    async def main():
        with opened(sessions=2) as model:
            session, right = model.session(), text(model)

            async def whole(of=session, prompt="One"):
                return "".join([piece async for piece in of.agenerate(prompt, max_tokens=8, ignore_eos=True)])

            both = await asyncio.gather(whole(), whole(), return_exceptions=True)
            assert sorted(map(type, both), key=str) == sorted([str, drey.UsageError], key=str), both
            assert right in both
            for _ in range(4):
                async for _ in session.agenerate("One", **LONG):
                    break
                assert await whole() == right

                async def endless():
                    while True:
                        async for _ in session.agenerate("One", **LONG):
                            pass
                task = asyncio.create_task(endless())
                await asyncio.sleep(0.02)
                task.cancel()
                assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError)
                assert await whole() == right
            chat = session.create_chat_completion("One", max_tokens=4)
            assert (await session.acreate_chat_completion("One", max_tokens=4))["choices"] == chat["choices"]
            assert await session.acomplete("One", max_tokens=8, ignore_eos=True) == right
            async with await session.acreate_completion("One", stream=True, **LONG) as chunks:
                assert (await chunks.__anext__())["choices"][0]["text"] and "so far>" in repr(chunks), chunks
            assert ", closed (interrupted)>" in repr(chunks), chunks
            for wait in (0, 0.001, 0.05):  # before the text, and in its middle
                async def chats():
                    while True:
                        await session.acreate_chat_completion("One", **LONG)
                task = asyncio.create_task(chats())
                await asyncio.sleep(wait)
                task.cancel()
                assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError)
                assert not session._writer._text and await whole() == right
            task = asyncio.create_task(whole())
            await asyncio.sleep(0)
            session.close()
            assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], drey.UsageError)
    asyncio.run(main())


def arguments_are_checked():
    """A NUL ends no string early; wrong kinds are said; content may be a list of parts of text."""
    with opened() as model:
        alike = [[{"role": "user", "content": content}] for content in (
            "One\ntwo", [{"type": "text", "text": "One"}, {"type": "text", "text": "two"}])]
        assert len({tuple(model.tokenize_chat(messages)) for messages in alike}) == 1
        for call in (lambda: model.generate("One", stop=["a\0b"]), lambda: model.generate("One", stop="\0"),
                     lambda: model.generate("One", stop=[1]), lambda: drey.Model(target + "\0.gguf"),
                     lambda: drey.Model(target, draft="no\0ne"), lambda: drey.Model(target, policy="auto\0"),
                     lambda: drey.Model(target, kv="f16\0"), lambda: drey.Model(target, cpu="ref\0"),
                     lambda: drey.Model(None), lambda: drey.Model(target, threads="many"),
                     lambda: drey.Model(target, memory=-1), lambda: drey.Model(target, memory="1e999"),
                     lambda: model.generate(5), lambda: model.generate([2 ** 40]), lambda: model.generate([None]),
                     lambda: model.generate("One", max_tokens=2 ** 31), lambda: model.generate("One", max_tokens="2"),
                     lambda: model.generate("One", sampling={"warmth": 1}), lambda: model.generate("One", sampling=1),
                     lambda: model.generate("One", temperature="hot"), lambda: model.generate("One", top_k=None),
                     lambda: model.generate("One", sampling=drey.Sampling(temperature="hot")),
                     lambda: model.generate("One", sampling=drey.Sampling(seed=-1)),
                     lambda: model.generate("One", grammar="[ab]"), lambda: model.generate("\ud800"),
                     lambda: model.detokenize(5), lambda: model.detokenize("ab"), lambda: model.tokenize(5),
                     lambda: model.chat(None), lambda: model.chat([]), lambda: model.chat({"role": "user"}), lambda: model.chat(["One"]),
                     lambda: model.chat([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]),
                     lambda: model.chat([{"role": "user", "content": {1}}]), lambda: model.grammar(choices={1}),
                     lambda: model.chat([{"role": "nobody", "content": "a"}]), lambda: model.chat([{"role": "user"}]),
                     lambda: model.complete("One", logit_bias=[1]), lambda: model.complete("One", logit_bias={"a": 1}),
                     lambda: model("One", logprobs=21), lambda: model("One", logprobs="many"), lambda: model("One", n=2),
                     lambda: model.create_chat_completion("One", tool_choice="some"),
                     lambda: model.create_chat_completion("One", tool_choice={"type": "function"}),
                     lambda: model.create_chat_completion("One", response_format={"type": "xml"}),
                     lambda: model.create_chat_completion("One", response_format={"type": "json_schema"}),
                     lambda: model.create_chat_completion("One", tools=[{"type": "function"}]),
                     lambda: model.create_chat_completion("One", chat_template_kwargs={"a": {1}}),
                     lambda: model.embed(5), lambda: model.embed("One", pooling="sum"), lambda: model.embed(""),
                     lambda: model.save("no\0ne"), lambda: model.load(None), lambda: drey.Model.pull(5),
                     lambda: drey.Model.from_pretrained("a/b", "*a*b*"),
                     lambda: drey.Session(None), lambda: drey.Grammar("model", regex="a")):
            assert refused(call)
        stopped = text(model)[3:5]
        assert "".join(model.generate("One", max_tokens=8, ignore_eos=True, stop=stopped)) == text(model)[:3]


if __name__ == "__main__":
    for test in (permutations, texts_after, grammars, busy, dropped, by_other_threads, by_signals, forked, at_exit,
                 asynchronous, arguments_are_checked):
        began = time.time()
        test()
        if os.environ.get("TIMES"):
            print("%-22s %.2f s" % (test.__name__, time.time() - began), flush=True)
    assert threading.active_count() < 16
