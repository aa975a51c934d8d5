#!/usr/bin/env python3
"""The page of `drey serve` in Chromium: against the server on a toy, and against a stub that gives
out the same page and answers when the test says so, so that nothing depends on the clock.
Screenshots go to PICTURES where that is named.
    page.py DREY MAKE_TOY [PICTURES]"""
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # the tree is not the test's to write to
import chromium
from driven_page import (Stub, answered, ask, click, finish, fresh, is_provisional, is_solid, load, messages, text_of, type_text)
from page_keeping import test_full_storage, test_keeping, test_no_storage, test_two_pages
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../serve"))
import serve_client


def test_provisional(browser, stub):
    fresh(browser, stub.url)
    turn = ask(browser, stub, "Tell me of the fox.")
    assert messages(turn) == [("user", "Tell me of the fox.")]
    assert turn.request["stream"] and turn.request["drey_provisional"] and turn.request["return_progress"]
    assert "temperature" not in turn.request and "Authorization" not in turn.headers
    turn.begin().event(choices=[], prompt_progress={"total": 400, "cache": 0, "processed": 100, "time_ms": 9000})
    status = browser.wait("document.querySelector('.assistant progress')?.value === 100 && "
                          "document.querySelector('.assistant .status').textContent")
    assert "Reading the prompt: 100 of 400 tokens" in status and "about 0:27 left" in status, status
    turn.say("The quick ", "brown fox")
    is_provisional(browser, " brown fox")
    is_solid(browser, "The quick")
    for scheme in "light", "dark":
        browser.screen(1100, 800, scheme)
        dim, solid = browser.js("contrast('.provisional')"), browser.js("contrast('.body p')")
        assert 4.5 <= dim < solid, (scheme, dim, solid)
    turn.say("brown ")  # what is verified of it becomes solid; the rest stays as it was
    is_provisional(browser, " fox")
    turn.say(provisional="dog")
    is_provisional(browser, " dog")
    turn.say("cat sat. And\n\n", "then")
    is_solid(browser, "The quick brown cat sat. And")
    is_provisional(browser, "then")
    assert browser.js("document.querySelector('.provisional').parentElement.className") == "body"
    turn.say("```c\nint x;\n", "int y;")
    browser.wait("document.querySelector('.fence code .provisional')?.textContent === 'int y;'")
    assert browser.js("getComputedStyle(document.querySelector('.provisional')).whiteSpace") == "pre"  # as what is verified
    turn.say("```\n", "")
    # Code is drafted where it will be.
    turn.say("And\n\n", "```c\nint z;\n```\n")
    browser.wait("document.querySelector('.body > .provisional .fence code')?.textContent === 'int z;'")
    place = "document.querySelectorAll('.fence')[1].querySelector('code').getBoundingClientRect().top"
    before = browser.js(place)
    turn.say("```c\nint z;\n```\n", "")
    browser.wait("document.querySelectorAll('.fence').length === 2 && !document.querySelector('.provisional')")
    assert abs(browser.js(place) - before) < 1, (browser.js(place), before)
    finish(browser, turn)
    seen = browser.js("solid")
    assert all(after.startswith(before) for before, after in zip(seen, seen[1:])), seen
    said = browser.js("said.join(' ')")
    assert "cat sat." in said and "fox" not in said and "dog" not in said and "int y" not in said, said
    figures = browser.js("document.querySelector('.figures').textContent")
    assert "7 tokens · 0.52 tokens/s · 75 % of drafts accepted · reused 30 of 40" in figures, figures
    for part in "0.52 of 0.61 tokens/s", "973M of 1.12G/s", "71 %", "2.36G of 2.50G":
        browser.wait(f"document.getElementById('strip').innerText.replaceAll('\\n', ' ').includes('{part}')")
    click(browser, '#memory')
    assert "weights kept in memory" in browser.js("document.getElementById('parts').innerText")
    browser.press("Escape")
    assert browser.js("document.getElementById('parts').hidden")


MARKDOWN = text_of("page_sample.md").rstrip("\n")


def test_markdown(browser, stub):
    fresh(browser, stub.url)
    turn = ask(browser, stub, "Show *all*.").begin()
    for at in range(0, len(MARKDOWN), 7):  # cut anywhere
        turn.say(MARKDOWN[at:at + 7])
    finish(browser, turn)
    count = lambda selector: browser.js(f"document.querySelectorAll('.assistant .body {selector}').length")
    text = lambda selector: browser.js(f"document.querySelector('.assistant .body {selector}').textContent")
    assert text("h1") == "Title & more" and text("strong") == "two three" and text("strong em") == "three"
    assert text("p") == """Text with one, two three, a*b*, gone, 2 * 3 * 4, snake_case_name and *stars*.
safe, [not](javascript:alert(1)), https://example.org/, https://example.org/x.
<img src=x onerror="document.title='broken'"><script>document.title = 'broken'</script>""", text("p")
    assert text("del") == "gone" and text("p code") == "a*b*" and count("p em") == 2, count("p em")
    links = browser.js("[...document.querySelectorAll('.body a')].map((a) => [a.href, a.rel, a.target])")
    assert links == [[url, "noopener noreferrer", "_blank"] for url in (
        "https://example.org/a_(b)", "https://example.org/", "https://example.org/x",
        "https://example.org/p.png")], links
    assert count("> ul > li") == 3 and count("> ul > li > ol > li") == 2 and text("ol pre") == 'print("x")'
    assert text("blockquote li") == "list" and count("hr") == 1 and text("> .fence pre") == "<b>plain</b>"
    assert count("tr") == 3 and text("tr:last-child td") == "b | c" and count("td.right") == 2
    assert count("img") == 0 and count("script") == 0 and browser.js("document.title") == "Show *all*. – drey"
    assert text("> p:last-child") == "picture **open *and `never closed"
    assert text("> p:last-child") and browser.js("document.querySelector('.user .body').textContent") == "Show *all*."
    # However it is cut, a text looks the same as when it comes at once.
    assert browser.js("""(() => {
        const box = document.createElement("div");
        draw_markdown(box, %s);
        return box.innerHTML === [...document.querySelectorAll(".assistant .body")].at(-1).innerHTML;
    })()""" % json.dumps(MARKDOWN))


def test_formulas(browser, stub):
    """TeX is drawn as formulas: a fraction is higher than a letter; page_readers.js has others."""
    fresh(browser, stub.url)
    turn = ask(browser, stub, "A formula?").begin()
    turn.say("So \\(\\frac{a}{b}\\) and \\(a\\), $5 and $6.\n\n$$\\sum_{i=1}^n i$$")
    finish(browser, turn, and_="document.querySelectorAll('math').length === 3")
    # Columns of equations meet at their signs.
    turn = ask(browser, stub, "Lines?").begin()
    turn.say("\\begin{align}\nx &= 1 \\\\\nx + y + z &= 2\n\\end{align}")
    finish(browser, turn, and_="document.querySelectorAll('math').length === 4")
    ends = browser.js("[...document.querySelectorAll('mtr')].map((row) => row.firstChild.lastChild.getBoundingClientRect().right)")
    assert abs(ends[0] - ends[1]) < 1, ends
    heights = browser.js("[...document.querySelectorAll('math')].map((x) => x.getBoundingClientRect().height)")
    assert heights[0] > 1.3 * heights[1] and heights[2] > heights[1], heights


def test_colours(browser, stub):
    """Code has colours that can be read, and its text is as it was."""
    fresh(browser, stub.url)
    code = {"c": 'int x = 0x1F; /* no */ char *s = "a//b\\"c"; // end', "py": "def f(x):\n    return f'{x}' + \"\"\"a\nb\"\"\"  # it's",
            "sql": "SELECT 1 FROM t WHERE a = 'it' -- x", "none": "int x = 1;"}
    wanted = {"c": ["int|keyword", "0x1F|number", "/* no */|comment", "char|keyword", '"a//b\\"c"|string', "// end|comment"],
              "py": ["def|keyword", "return|keyword", "f'{x}'|string", '"""a\nb"""|string', "# it's|comment"],
              "sql": ["SELECT|keyword", "1|number", "FROM|keyword", "WHERE|keyword", "'it'|string", "-- x|comment"], "none": []}
    turn = ask(browser, stub, "Code?").begin()
    turn.say("\n".join(f"```{name}\n{text}\n```" for name, text in code.items()))
    finish(browser, turn, and_="document.querySelectorAll('.fence').length === 4")
    for i, (name, text) in enumerate(code.items()):
        at = f"document.querySelectorAll('.fence code')[{i}]"
        assert browser.js(at + ".textContent") == text, name
        got = browser.js(f"[...{at}.children].map((x) => x.textContent + '|' + x.className)")
        assert got == wanted[name], (name, got)
    for scheme in "light", "dark":
        browser.screen(1100, 800, scheme)
        browser.wait(f"document.documentElement.dataset.theme === '{scheme}'")
        for kind in "comment", "string", "number", "keyword":
            assert browser.js(f"contrast('.fence .{kind}')") >= 4.5, (scheme, kind)


def test_reasoning(browser, stub):
    """Thoughts of a model are folded, whether they come apart or between marks; calls are shown."""
    details = "[...document.querySelectorAll('.assistant details')].at(-1)"
    solid = f"(() => {{ const copy = {details}.querySelector('.body').cloneNode(true);" \
        "copy.querySelectorAll('.provisional').forEach((x) => x.remove()); return copy.textContent.trimEnd(); })()"
    thinks = lambda text: browser.wait(f"{solid} === {json.dumps(text)}", f"thought: {text!r}")
    fresh(browser, stub.url)
    turn = ask(browser, stub, "How many?").begin()
    assert not browser.js("document.querySelector('.assistant details:not([hidden])')")
    turn.say(delta={"reasoning_content": "One and one"}, provisional=" are two.")
    thinks("One and one")
    is_provisional(browser, " are two.")
    assert not browser.js(details + ".open")
    turn.say(delta={"reasoning_content": " are two."}, provisional="</think>")
    thinks("One and one are two.")
    is_provisional(browser, "")
    turn.say("Two.", " Or")
    is_solid(browser, "Two.")
    is_provisional(browser, " Or")
    finish(browser, turn)
    assert browser.js(details + ".querySelector('summary').textContent") == "Reasoning · 5 words"
    # It is no part of the conversation that the model gets back.
    turn = ask(browser, stub, "Sure?").begin()
    assert messages(turn)[1] == ("assistant", "Two."), messages(turn)
    for piece in "<think>", "Let me", " see.", "</think>", "\n\nYes.":
        turn.say(piece)
    thinks("Let me see.")
    is_solid(browser, "Yes.")
    call = lambda **keys: turn.say(delta={"tool_calls": [{"index": 0, **keys}]})
    call(id="a", type="function", function={"name": "look_up", "arguments": ""})
    call(function={"arguments": '{"word":'})
    call(function={"arguments": '"<b>"}'})
    finish(browser, turn, finish="tool_calls")
    load(browser, stub.url)
    shown = browser.js("document.querySelector('.call').textContent")
    assert shown == 'Calls look_up{\n "word": "<b>"\n}', shown
    thinks("Let me see.")
    is_solid(browser, "Yes.")
    assert "Let me see" not in browser.js("said.join(' ')")


def test_stop(browser, stub):
    fresh(browser, stub.url)
    for press in (lambda: browser.press("Escape"), lambda: click(browser, '#send')):
        turn = ask(browser, stub, "Count.").begin()
        turn.say("One, two, ", "three")
        is_provisional(browser, " three")
        press()
        assert turn.gone.wait(chromium.PATIENCE_S), "the page did not hang up"
        browser.wait("idle()")
        is_solid(browser, "One, two,")
        assert browser.js("provisional_now()") == ""
        assert browser.js("[...document.querySelectorAll('.problem')].at(-1).textContent") == "Stopped."
        assert browser.js("[...document.querySelectorAll('.problem')].at(-1).matches('.calm')")
    browser.js("tool('Continue', 'assistant').click()")
    turn = stub.turn().begin()
    assert messages(turn)[-1] == ("assistant", "One, two, ") and turn.request["continue_final_message"]
    turn.say("three.")
    finish(browser, turn, and_="solid_now() === 'One, two, three.' && !tool('Continue', 'assistant')")
    turn = ask(browser, stub, "And then?").begin()
    assert messages(turn)[-2:] == [("assistant", "One, two, three."), ("user", "And then?")]
    assert "continue_final_message" not in turn.request
    finish(browser, turn)


def test_resume(browser, stub):
    """An answer is read on after the page was loaded again, or its connection broke."""
    fresh(browser, stub.url)
    stub.keeps_streams = True
    turn = ask(browser, stub, "Count.").begin()
    turn.say("Ein, zw\u00e4\u00e4, ", "drei")
    is_provisional(browser, " drei")
    name = turn.headers["X-Conversation-Id"]
    assert len(name) > 20, name
    stub.deleted.clear()
    load(browser, stub.url)
    again = stub.turn()
    wanted = f"/v1/stream?conv_id={name}&from="
    assert again.path.startswith(wanted), again.path
    start = int(again.path[len(wanted):])  # whole events; an empty line may follow
    assert turn.n_sent - start in (0, 1), (turn.n_sent, start)
    again.begin_rest().say("drei, ")
    is_solid(browser, "Ein, zw\u00e4\u00e4, drei,")
    assert browser.js("!idle() && [...document.querySelectorAll('.assistant .tools button')].length === 0")
    again.out.put(None)  # it breaks off
    third = stub.turn()
    assert third.path.startswith(wanted) and int(third.path[len(wanted):]) > start, third.path
    third.begin_rest().say("vier.")
    finish(browser, third, and_="solid_now() === 'Ein, zw\u00e4\u00e4, drei, vier.'")
    assert browser.js("document.querySelectorAll('.problem:not([hidden])').length") == 0
    assert not stub.deleted and browser.js("Object.values(current.nodes).every(({ stream }) => !stream)")
    # Stopping ends it at the server as well, also after it was read on.
    turn = ask(browser, stub, "Again.").begin()
    turn.say("One")
    is_solid(browser, "One")
    load(browser, stub.url)
    again = stub.turn().begin_rest()
    again.say(", two")
    is_solid(browser, "One, two")
    browser.press("Escape")
    assert again.gone.wait(chromium.PATIENCE_S)
    browser.wait("idle()")
    assert stub.deleted == [f"/v1/stream?conv_id={turn.headers['X-Conversation-Id']}"], stub.deleted
    # What the server does not keep any more was cut short.
    turn = ask(browser, stub, "Once more.").begin()
    turn.say("Half")
    is_solid(browser, "Half")
    stub.keeps_streams = False
    load(browser, stub.url)
    browser.wait("idle() && [...document.querySelectorAll('.problem')].at(-1).textContent === 'The answer was cut short.'")
    is_solid(browser, "Half")
    assert browser.js("tool('Continue', 'assistant') !== undefined")


def test_models(browser, stub):
    """A server with several models: each conversation has its own; one that is not loaded is not
    asked for anything but an answer."""
    one = stub.models
    state = lambda name, value: {"id": name, "object": "model", "status": {"value": value}, "drey": {"want_bytes": 3 << 30, "failed": ""}}
    stub.models = [state("a model", "unloaded"), state("b", "unloaded")]
    stub.asked.clear()
    fresh(browser, stub.url)
    box = "document.getElementById('models')"
    browser.wait(f"!{box}.hidden && {box}.options.length === 2 && /first question/.test(document.getElementById('facts').innerText)")
    assert browser.js(f"{box}.value") == "a model" and not unnamed(browser)
    asked = stub.asked[len(stub.asked) - stub.asked[::-1].index("/"):]  # by this page
    assert not [path for path in asked if "props" in path or "metrics" in path], stub.asked
    browser.js(f"{box}.value = 'b'; {box}.dispatchEvent(new Event('change'))")
    turn = ask(browser, stub, "Who?")
    assert turn.request["model"] == "b", turn.request
    browser.wait("document.querySelector('.assistant .status').textContent.startsWith('Loading b')")
    stub.models[1] = state("b", "loaded")
    turn.begin().say("B.")
    turn.end()
    browser.wait(f"idle() && {box}.selectedOptions[0].textContent === 'b'")
    assert browser.js(f"{box}.options[0].textContent") == "a model (not loaded)"
    browser.wait("usual.temperature === 0")
    assert "/props?model=b" in stub.asked and not [path for path in stub.asked if "model=a" in path], stub.asked
    click(browser, '#new')
    assert browser.js(f"{box}.value") == "b"  # the last one that was chosen
    browser.js(f"{box}.value = 'a model'; {box}.dispatchEvent(new Event('change'))")
    turn = ask(browser, stub, "And you?").begin()
    assert turn.request["model"] == "a model"
    finish(browser, turn)
    load(browser, stub.url)
    browser.wait(f"{box}.value === 'a model'")
    browser.js("[...document.querySelectorAll('#chats .name')].find((b) => b.textContent === 'Who?').click()")
    assert browser.js(f"{box}.value") == "b"
    stub.models = one


def test_queue(browser, stub):
    """Enter while an answer is written: the message goes when that has ended, in its own
    conversation, and stays in its box if the answer was stopped."""
    fresh(browser, stub.url)
    waits, typed = "!document.getElementById('queued').hidden", "document.getElementById('text').value"
    turn = ask(browser, stub, "A?").begin()
    turn.say("a")
    is_solid(browser, "a")
    browser.press("Enter")
    assert not browser.js(waits)  # nothing is typed
    browser.write("B?")
    browser.press("Enter")
    assert browser.js(waits) and browser.js(typed) == "B?" and not unnamed(browser)
    click(browser, '#queued button')
    assert not browser.js(waits) and browser.js("document.activeElement.id") == "text"
    browser.press("Enter")
    click(browser, '#new')
    assert not browser.js(waits) and browser.js(typed) == ""
    turn.say(".")
    turn.end()
    turn = stub.turn().begin()  # it goes also where its conversation is not shown
    assert messages(turn) == [("user", "A?"), ("assistant", "a."), ("user", "B?")], messages(turn)
    assert browser.js("current") is None
    click(browser, '#chats .name')
    assert browser.js(typed) == ""
    turn.say("b")
    is_solid(browser, "b")
    type_text(browser, "C?")
    browser.press("Enter")
    click(browser, '#send')  # which stops
    assert turn.gone.wait(chromium.PATIENCE_S)
    browser.wait("idle() && /your message was not sent/.test(document.getElementById('notice').textContent)")
    assert browser.js(typed) == "C?" and browser.js("path_of(current).length") == 4
    browser.press("Enter")
    turn = stub.turn().begin()
    assert messages(turn)[-1] == ("user", "C?")
    finish(browser, turn)


def test_edit_and_retry(browser, stub):
    fresh(browser, stub.url)
    for question, answer in ("A?", "a."), ("B?", "b."):
        answered(browser, stub, question, answer)
    browser.js("tool('Retry', 'assistant').click()")
    turn = stub.turn().begin()
    assert messages(turn) == [("user", "A?"), ("assistant", "a."), ("user", "B?")]
    turn.say("second b.")
    finish(browser, turn, and_="solid_now() === 'second b.'")
    browser.js("tool('Earlier version', 'assistant').click()")
    is_solid(browser, "b.")
    browser.js("tool('Edit', 'user').click()")
    browser.wait("document.activeElement.ariaLabel === 'Edited message'")
    browser.js("document.activeElement.select()")
    browser.write("C?")
    browser.press("Enter")
    turn = stub.turn().begin()
    assert messages(turn) == [("user", "A?"), ("assistant", "a."), ("user", "C?")]
    turn.say("c.")
    # Asking again while an answer is coming ends that one; the new one is not harmed by it.
    is_solid(browser, "c.")
    browser.js("retry(path_of(current).at(-1))")
    again = stub.turn().begin()
    assert turn.gone.wait(chromium.PATIENCE_S)
    again.say("c, again.")
    is_solid(browser, "c, again.")
    assert browser.js("!idle()")
    finish(browser, again)
    browser.js("tool('Earlier version', 'user').click()")
    browser.wait("document.querySelectorAll('article').length === 4 && solid_now().endsWith('b.')")
    # An answer that was edited is what the model sees as its own.
    browser.js("tool('Edit', 'assistant').click()")
    browser.wait("document.activeElement.ariaLabel === 'Edited message'")
    browser.js("document.activeElement.select()")
    browser.write("bee.")
    browser.js("document.activeElement.form.requestSubmit()")
    is_solid(browser, "bee.")
    turn = ask(browser, stub, "D?").begin()
    assert messages(turn)[-3:] == [("user", "B?"), ("assistant", "bee."), ("user", "D?")]
    finish(browser, turn)


def test_errors(browser, stub):
    fresh(browser, stub.url)
    problem, status = (f"[...document.querySelectorAll('.{name}')].at(-1)" for name in ("problem", "status"))
    full = "It would need 1.2 GB, and 0.4 GB are free."
    ask(browser, stub, "Is there room?").refuse(503, full, "Retry-After: 1")
    browser.wait(f"{status}.textContent.startsWith({json.dumps(full)})")
    stub.turn().refuse(503, full, "Retry-After: 5000")  # it has asked again by itself
    browser.wait("/Trying again in 1:[12][0-9]:[0-9][0-9]/.test(" + status + ".textContent)")
    browser.js(status + ".querySelector('button').click()")
    stub.turn().refuse(503, full, "Retry-After: 5000")
    browser.wait(status + ".querySelector('button') !== null")
    browser.press("Escape")
    browser.wait(f"idle() && {problem}.textContent === 'Stopped.'")
    ask(browser, stub, "Anything?").refuse(400, "The prompt has 9000 tokens; the context holds 4096.")
    browser.wait(f"idle() && {problem}.textContent.startsWith('The prompt has 9000') && !{problem}.matches('.calm')")
    assert browser.js("tool('Retry', 'assistant') && !tool('Edit', 'assistant') && !tool('Copy', 'assistant')")
    turn = ask(browser, stub, "And now?")
    for key, words in ("secre", "This server needs a key."), ("secret", "The key is wrong."):
        turn.refuse(401, "Invalid API Key: send it as Authorization: Bearer KEY.")
        browser.wait("document.getElementById('settings-dialog').open && document.activeElement.name === 'key'")
        assert browser.js("document.getElementById('key-says').textContent") == words
        assert browser.js(f"{problem}.textContent") == f"{words} Type it in Settings."
        browser.write(key)
        browser.press("Enter")
        turn = stub.turn()  # the question is asked again, once, in its place
        assert turn.headers["Authorization"] == f"Bearer {key}"
        assert messages(turn) == [("user", "Is there room?\n\nAnything?\n\nAnd now?")]
    turn.begin()
    finish(browser, turn)
    browser.js("open_settings()")
    assert browser.js("document.getElementById('key-says').hidden")
    browser.js("document.getElementById('settings-dialog').close('')")
    turn = ask(browser, stub, "With the key.").begin()
    turn.say("Half an ans")
    is_solid(browser, "Half an ans")
    turn.event(error={"code": 500, "message": "The disk failed."})
    turn.out.put(None)
    browser.wait(f"idle() && {problem}.textContent === 'The disk failed.'")
    is_solid(browser, "Half an ans")
    turn = ask(browser, stub, "Once more.").begin()
    turn.say("An")
    turn.out.put(None)
    browser.wait(f"idle() && {problem}.textContent === 'The connection ended before the answer did.'")


def test_same_answer(browser, stub):
    """Asking again where nothing is left to chance says so, and offers another way."""
    fresh(browser, stub.url)
    answered(browser, stub, "A?", "a.", tokens=1)
    assert browser.js("document.querySelector('.figures').textContent").startswith("1 token ·")
    notice = "document.getElementById('notice')"
    for setting, sentence, sent in (("{}", "At temperature 0", {"temperature": 0.8, "seed": -1}),
                                    ("{ temperature: 1, seed: 3 }", "With the same seed", {"temperature": 1, "seed": -1})):
        browser.js(f"settings = {setting}; tool('Retry', 'assistant').click()")
        turn = stub.turn().begin()
        turn.say("a.")
        browser.wait(f"{notice}.textContent.startsWith('{sentence} ') && solid_now() === 'a.'")
        browser.js(f"{notice}.querySelector('button').click()")
        assert turn.gone.wait(chromium.PATIENCE_S)
        turn = stub.turn().begin()
        assert {key: turn.request.get(key) for key in sent} == sent, turn.request
        turn.say("another a.")
        turn.end()
        browser.wait(f"idle() && solid_now() === 'another a.' && !{notice}.textContent")
    browser.js("settings = { temperature: 1 }; tool('Retry', 'assistant').click()")
    turn = stub.turn().begin()
    finish(browser, turn)
    assert browser.js(f"{notice}.textContent") == ""
    browser.js("settings = {}")


def test_slow_passes(browser, stub):
    """The disk's speed is that of the passes, however seldom they end."""
    fresh(browser, stub.url)
    stub.looks = 2
    turn = ask(browser, stub, "How fast?").begin()
    seen, since = set(), stub.counted
    while stub.counted < since + 6:
        turn.say("x")
        seen.add(browser.js("document.querySelector('#disk .value').textContent"))
    assert seen in ({"–/s", "973M/s"}, {"973M/s"}), seen
    finish(browser, turn)
    stub.looks = 1


def test_directions(browser, stub):
    """Text that is written from right to left stands so, block by block; code does not."""
    fresh(browser, stub.url)
    answered(browser, stub, "\u05e9\u05dc\u05d5\u05dd, drey!", "\u0645\u0631\u062d\u0628\u0627 drey.\n\nLatin.\n\n- \u0623\u0644\u0641\n- \u0628\u0627\u0621\n\n```\nx = 1\n```\n\n| \u0623 | b |\n|--|--|\n| 1 | 2 |\n")
    direction = lambda selector: browser.js(f"getComputedStyle(document.querySelector('{selector}')).direction")
    for selector, wanted in ((".user .body", "rtl"), (".assistant p", "rtl"), (".assistant p + p", "ltr"), (".assistant ul", "rtl"),
                             (".fence code", "ltr"), (".assistant table", "rtl"), ("#title", "rtl"), ("#chats .name", "rtl")):
        assert direction(selector) == wanted, (selector, direction(selector))
    # A paragraph's first letter is at the right.
    assert browser.js("""(() => {
        const range = document.createRange(), p = document.querySelector(".assistant p");
        range.setStart(p.firstChild, 0);
        range.setEnd(p.firstChild, 1);
        return p.getBoundingClientRect().right - range.getBoundingClientRect().right;
    })()""") < 2
    browser.write("\u05e9\u05dc\u05d5\u05dd")
    assert direction("#text") == "rtl"
    browser.js("keep_unsent(document.getElementById('text').value = '')")


def test_start(browser, stub):
    """An empty page says what the model is; conversations are found by their words."""
    fresh(browser, stub.url)
    facts = browser.wait("document.getElementById('facts')?.children.length >= 10 && document.getElementById('facts').innerText")
    assert facts.split("\n") == ["Model", "toy-14B", "Parameters", "14.2 billion", "Context", "4096 tokens",
                                 "Memory budget", "2.50G", "At most", "0.61 tokens/s"], facts
    click(browser, '.examples button')
    assert browser.js("document.activeElement.id === 'text' && document.getElementById('text').value").startswith("Explain")
    browser.js("keep_unsent(document.getElementById('text').value = '')")
    for question, answer in ("Apples?", "Red ones."), ("Pears?", "Green ones."):
        answered(browser, stub, question, answer)
        click(browser, '#new')
    titles = "[...document.querySelectorAll('#chats .name')].map((b) => b.textContent).join()"
    press = lambda key, modifiers: browser.call("Input.dispatchKeyEvent", type="keyDown", key=key, modifiers=modifiers)
    press("k", 2)
    assert browser.js("document.activeElement.id") == "search"
    for words, found in ("red", "Apples?"), ("ONES", "Pears?,Apples?"), ("plum", ""):
        browser.js("document.activeElement.select()")
        browser.write(words)
        assert browser.js(titles) == found, (words, browser.js(titles))
        assert browser.js("document.getElementById('none').hidden") == bool(found)
    browser.press("Escape")
    assert browser.js(titles) == "Pears?,Apples?" and browser.js("document.getElementById('search').value") == ""
    press("O", 10)
    assert browser.js("document.activeElement.id") == "text" and browser.js("current") is None
    manifest = browser.call("Page.getAppManifest")
    assert not manifest["errors"] and manifest["manifest"]["startUrl"] == stub.url, manifest


def test_context(browser, stub):
    """Shows how full the context is, and a warning before it is full."""
    fresh(browser, stub.url)
    used = "document.querySelector('#context .value').textContent"
    browser.wait(f"{used} === '– of 4096'")
    turn = ask(browser, stub, "Much?").begin()
    turn.event(choices=[], prompt_progress={"total": 3400, "cache": 0, "processed": 100, "time_ms": 9000})
    browser.wait(f"{used} === '3400 of 4096'")
    assert browser.js("document.getElementById('full').hidden")
    turn.say("So ", timings={"cache_n": 30, "prompt_n": 3370, "predicted_n": 100})
    browser.wait(f"{used} === '3500 of 4096' && /nearly full: 3500 of 4096/.test(document.getElementById('full').textContent)")
    turn.end()  # 40 and 7, by its usage
    browser.wait(f"idle() && {used} === '47 of 4096' && document.getElementById('full').hidden")
    load(browser, stub.url)
    browser.wait(f"{used} === '47 of 4096'")
    click(browser, '#new')
    browser.wait(f"{used} === '– of 4096'")
    # Before it is refused that is said: of what the server has not counted, and of what is typed.
    full = "document.getElementById('full')"
    type_text(browser, "word " * 3000)
    browser.wait(f"{used} === '≈3750 of 4096' && /^The context is nearly full: about 3750 of 4096/.test({full}.textContent)")
    browser.write("word " * 1000)
    browser.wait(f"{used} === '≈5000 of 4096' && !{full}.hidden")
    said = browser.js(f"{full}.textContent")
    assert said.startswith("This conversation has about 5000 tokens, and the context has room for 4096") and \
        "Edit an earlier message" in said and "begin a new conversation" in said, said
    browser.press("Enter")
    refusal = {"code": 400, "message": "The prompt is too long.", "type": "exceed_context_size_error",
               "n_prompt_tokens": 5123, "n_ctx": 4096}
    stub.turn().refuse(400, refusal)
    problem = "[...document.querySelectorAll('.problem')].at(-1).textContent"
    browser.wait(f"idle() && {problem}.startsWith('This conversation has 5123 tokens, and the context has room for 4096')")
    assert browser.js(f"{full}.hidden") and browser.js(used) == "5123 of 4096"
    load(browser, stub.url)
    browser.wait(f"{used} === '5123 of 4096'")
    type_text(browser, "word")
    browser.wait(f"{used} === '≈5124 of 4096'")
    browser.js("keep_unsent(document.getElementById('text').value = '')")
    put = {"format": "drey-conversations", "conversations": [{"id": "long", "nodes": {
        "a": {"id": "a", "parent": None, "role": "user", "text": "word " * 4000}}}]}
    browser.js("import_chats(new File([%s], 'f.json'))" % json.dumps(json.dumps(put)))
    browser.wait("/^Imported 1 conversation/.test(document.getElementById('notice').textContent)")
    browser.js("[...document.querySelectorAll('#chats .name')].find((b) => chats.get('long').title.startsWith(b.textContent.slice(0, 9)) "
               "&& b.textContent.length > 150).click()")
    browser.wait(f"current.id === 'long' && {used} === '≈5000 of 4096' && !{full}.hidden")
    assert browser.js("document.getElementById('notice').textContent") == ""  # of what was shown before
    # The limit that has cut an answer.
    for settings, tokens, words in (("{ max_tokens: 7 }", 7, "7 tokens, as many as the settings allow."),
                                    ("{}", 9, "9 tokens, as many as the server allows."),
                                    ("{}", 4056, "the context is full, with 4096 tokens.")):
        browser.js(f"settings = {settings}; document.getElementById('new').click()")
        turn = ask(browser, stub, "Cut?").begin()
        turn.say("Cu")
        turn.end(tokens, finish="length")
        browser.wait(f"idle() && {problem}.includes({json.dumps(words)})", words)
        assert browser.js("[...document.querySelectorAll('.problem')].at(-1).matches('.calm')")
    browser.js("settings = {}")


def test_files(browser, stub):
    """Files go as text with a message: chosen, pasted or dropped; what cannot go is refused."""
    fresh(browser, stub.url)
    browser.wait("facts.n_ctx === 4096")
    notice = "document.getElementById('notice').textContent"
    chips = "[...document.querySelectorAll('#files .chip')].map((li) => li.textContent).join()"
    files = lambda event, *made: browser.js("""(() => {
        const data = new DataTransfer();
        for (const [name, text] of %s) data.items.add(new File([text], name));
        const event = new %s;
        %s.dispatchEvent(event);
    })()""" % (json.dumps(made), event, "document.getElementById('text')" if "paste" in event else "document.querySelector('main')"))
    files("ClipboardEvent('paste', { clipboardData: data, cancelable: true })", ("a.py", "print(1)\n```\n"))
    browser.wait(f"{chips} === 'a.py13 B'")
    files("DragEvent('drop', { dataTransfer: data, cancelable: true })", ("b.txt", "two"), ("c.bin", "a\0b"), ("long", "x" * 17000))
    browser.wait(f"{chips} === 'a.py13 B,b.txt3 B' && /^c.bin is no text file/.test({notice})")
    assert "long is too long: it has 16.6K, and the context has room for about 15.9K." in browser.js(notice)
    browser.js("attach([new File([new Uint8Array([255, 254, 65])], 'd')])")
    browser.wait(f"/^d is no text file/.test({notice})")
    click(browser, '[aria-label=\"Remove b.txt\"]')
    browser.wait(f"{chips} === 'a.py13 B'")
    turn = ask(browser, stub, "What is it?").begin()
    wanted = [("user", "File a.py:\n````\nprint(1)\n```\n````\n\nWhat is it?")]
    assert messages(turn) == wanted, messages(turn)
    turn.say("Code.")
    finish(browser, turn, and_="document.getElementById('files').hidden")
    load(browser, stub.url)
    assert browser.js("document.querySelector('.user summary').textContent") == "a.py 13 B"
    assert browser.js("document.querySelector('.user .body').textContent") == "What is it?"
    browser.js("tool('Retry', 'assistant').click()")
    turn = stub.turn().begin()
    assert messages(turn) == wanted
    finish(browser, turn)


def test_settings(browser, stub):
    fresh(browser, stub.url)
    click(browser, '#settings')
    sampling = {"temperature": 0.7, "top_p": 0.9, "top_k": 20, "min_p": 0.05, "repeat_penalty": 1.1, "presence_penalty": 0.5,
                "frequency_penalty": -0.5, "max_tokens": 64, "seed": 7}
    browser.js("document.querySelector('#settings-form details').open = true")
    for name, value in {"system": "Be brief.", "stop": "END\n###", **sampling}.items():
        browser.js(f"document.getElementById('settings-form').elements.{name}.focus()")
        browser.write(str(value))
    browser.press("Enter")
    browser.wait("settings.seed === 7")
    load(browser, stub.url)
    type_text(browser, "Line one")
    browser.press("Enter", shift=True)
    turn = ask(browser, stub, "line two").begin()
    assert messages(turn) == [("system", "Be brief."), ("user", "Line one\nline two")], messages(turn)
    assert {key: turn.request.get(key) for key in sampling} == sampling, turn.request
    assert turn.request["stop"] == ["END", "###"]
    finish(browser, turn, finish="length", and_="/^Cut here/.test(document.querySelector('.assistant .problem').textContent)")
    click(browser, '#theme')
    assert browser.js("document.documentElement.dataset.theme") == "light"  # the system's is dark
    load(browser, stub.url)
    assert browser.js("document.documentElement.dataset.theme") == "light"
    # A system prompt belongs to its conversation; what is as the server has it is not sent.
    browser.wait("usual.temperature === 0")
    click(browser, '#settings')
    assert browser.js("document.activeElement.name") == "chat_system"
    browser.js("document.activeElement.select()")
    browser.write("Rhyme.")
    browser.js("document.getElementById('settings-form').elements.temperature.value = '0'")
    click(browser, '#settings-form button.main')
    browser.wait("settings.temperature === 0")
    for wanted in "Rhyme.", "Be brief.":
        browser.wait("usual.temperature === 0")
        turn = ask(browser, stub, "Now?").begin()
        assert messages(turn)[0] == ("system", wanted) and "temperature" not in turn.request, turn.request
        finish(browser, turn)
        load(browser, stub.url)
        click(browser, '#new')


def test_likely(browser, stub):
    """Shows how likely each token was, and what else was: text, whatever it says."""
    fresh(browser, stub.url)
    turn = ask(browser, stub, "A?")
    assert "logprobs" not in turn.request
    turn.begin().say("a.")
    finish(browser, turn)
    assert browser.js("tool('Probabilities of the tokens', 'assistant') === undefined")
    click(browser, '#settings')
    browser.js("document.getElementById('settings-form').elements.likely.value = 'yes'")
    click(browser, '#settings-form button.main')
    browser.wait("settings.likely === 'yes'")
    turn = ask(browser, stub, "B?").begin()
    assert turn.request["logprobs"] is True and turn.request["top_logprobs"] == 5, turn.request
    token = lambda text, logprob, *others: {"token": text, "logprob": logprob, "top_logprobs": [
        {"token": other, "logprob": share} for other, share in ((text, logprob), *others)]}
    for content in [token("The", -0.01)], [token(" <b>", -0.6, (" *", -0.9)), token(" \n", -4, ("x", -0.02))]:
        turn.event(choices=[{"index": 0, "delta": {"content": "".join(one["token"] for one in content)}, "logprobs": {"content": content}}])
    finish(browser, turn, and_="tool('Probabilities of the tokens', 'assistant')?.isConnected")
    browser.js("tool('Probabilities of the tokens', 'assistant').click()")
    assert browser.js("[...document.querySelectorAll('.tokens span')].map((x) => [x.textContent, x.className])") == \
        [["The", ""], [" <b>", "unsure-1"], [" \n", "unsure-3"]]
    assert browser.js("document.querySelectorAll('.tokens span')[1].title") == '" <b>" 55 %; others: " *" 41 %'
    browser.js("document.querySelectorAll('.tokens span')[2].click()")
    assert browser.js("document.getElementById('notice').textContent") == '" \\n" 1.8 %; others: "x" 98 %'
    assert browser.js("[...document.querySelectorAll('.assistant .body')].at(-2).hidden") is True
    browser.js("draw(); tool('Probabilities of the tokens', 'assistant').click()")
    assert browser.js("[...document.querySelectorAll('.assistant .body')].at(-1).hidden") is False
    browser.js("settings = {}; write_store('drey.settings', settings)")


CONTROLS = {"button", "textbox", "combobox", "spinbutton", "link", "MenuListPopup", "log", "navigation",
            "progressbar", "dialog", "searchbox"}


def unnamed(browser):
    """Controls that a screen reader has no name for."""
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    return [node for node in nodes if not node.get("ignored") and node["role"]["value"] in CONTROLS and
            not node.get("name", {}).get("value", "").strip() and node["role"]["value"] != "MenuListPopup"]


def test_looks(browser, stub, pictures):
    """No scrolling sideways, names for all controls, colours that can be read; pictures for
    people."""
    fresh(browser, stub.url)
    answered(browser, stub, "How does a model that is larger than memory write text?", MARKDOWN.replace("never closed", "never` closed, " + "x" * 200))
    turn = ask(browser, stub, "And is it the same text? " + "y" * 300).begin()
    turn.say("Yes: what is fainter has been **drafted**. A pass of the target ", "reads all its weights, and verifies")
    is_provisional(browser, " reads all its weights, and verifies")
    for width, height, scheme in (1100, 800, "light"), (1100, 800, "dark"), (360, 740, "light"), (390, 844, "dark"):
        browser.screen(width, height, scheme, mobile=width < 500)
        browser.wait(f"innerWidth === {width} && document.documentElement.dataset.theme === '{scheme}'")
        wide = browser.js("""[document.documentElement.scrollWidth - innerWidth,
            document.getElementById("log").scrollWidth - document.getElementById("log").clientWidth]""")
        assert max(wide) <= 0, (width, wide)
        # Cells of a table are not narrower than their words: it scrolls.
        assert browser.js("""[...document.querySelectorAll("td")].every((cell) =>
            getComputedStyle(cell).overflowWrap === "normal")""")
        for selector in (".provisional", ".figures", ".body a", ".body code", "#send", ".meter .label",
                         ".user .body", "#new", "#title", ".tools button", ".body blockquote", ".fence .bar"):
            assert browser.js(f"contrast('{selector}')") >= 4.5, (scheme, selector)
        if width < 500:  # large enough for fingers
            small = browser.js("""[...document.querySelectorAll("button, summary, #search")].filter((x) => x.checkVisibility() &&
                !x.closest("#strip") && x.getBoundingClientRect().height < 40).map((x) => x.outerHTML)""")
            assert not small, small
        if pictures:
            browser.picture(f"{pictures}/{scheme}-{width}.png")
    assert not unnamed(browser), unnamed(browser)
    click(browser, '#menu')
    browser.wait("getComputedStyle(document.getElementById('side')).visibility === 'visible'")
    if pictures:
        browser.picture(f"{pictures}/menu.png")
    browser.press("Escape")
    assert browser.js("!document.getElementById('side').classList.contains('open') && !idle()")
    click(browser, '#settings')
    assert not unnamed(browser), unnamed(browser)
    if pictures:
        browser.picture(f"{pictures}/settings.png")
    browser.press("Escape")
    finish(browser, turn)
    turn = ask(browser, stub, "Sums, and how to compute one?").begin()
    turn.say(delta={"reasoning_content": "A geometric series, then a loop."})
    turn.say("A sum\n\n$$\\sum_{k=0}^{n} q^k = \\frac{1-q^{n+1}}{1-q}$$\n\nwith \\(q \\ne 1\\), and "
             "\\[A = \\begin{pmatrix} a & b \\\\ \\sqrt{c} & \\hat{d} \\end{pmatrix}\\]\n\n```c\n"
             "/* The same, term by term. */\nfor (int k = 0; k <= n; k++)\n    sum += pow(q, k);\nprintf(\"%g\\n\", sum);\n```\n")
    finish(browser, turn, and_="document.querySelectorAll('math').length === 3")
    for width, height, scheme in (1100, 800, "light"), (390, 844, "dark"):
        browser.screen(width, height, scheme, mobile=width < 500)
        browser.wait(f"innerWidth === {width} && document.documentElement.dataset.theme === '{scheme}'")
        assert browser.js("document.getElementById('log').scrollWidth - document.getElementById('log').clientWidth") <= 0
        if pictures:
            browser.picture(f"{pictures}/formulas-{width}.png")
    click(browser, '#new')
    for width, height, scheme in (390, 844, "dark"), (1100, 800, "light"):
        browser.screen(width, height, scheme, mobile=width < 500)
        browser.wait(f"innerWidth === {width} && document.documentElement.dataset.theme === '{scheme}'")
        for selector in "#facts dt", "#facts dd", ".examples button", "#attach":
            assert browser.js(f"contrast('{selector}')") >= 4.5, (scheme, selector)
        if pictures:
            browser.picture(f"{pictures}/start-{width}.png")
    click(browser, '#chats .name')


def test_focus(browser, stub):
    """Every control can be reached by the keyboard, from the first to the last and round."""
    browser.screen(1100, 800, "light")
    load(browser, stub.url)
    seen = []
    while len(seen) < 60 and seen.count("text") < 2:  # round once, from the message box on
        seen.append(browser.js("document.activeElement.id || document.activeElement.ariaLabel || document.activeElement.textContent.slice(0, 30)"))
        browser.press("Tab")
    for name in "new", "export", "theme", "settings", "log", "memory", "send", "Edit", "Retry":
        assert name in seen, (name, seen)
    order = [seen.index(name) for name in ("text", "send", "Go to the message box", "new", "settings", "log", "memory")]
    assert order == sorted(order) and seen[-1] == "text", seen


def test_server(browser, server):
    """The same text as from the API; a place that is free again for the next client."""
    fresh(browser, server.address)
    assert browser.wait("document.getElementById('model').textContent") == "toy"
    browser.js("write_store('drey.settings', settings = { temperature: 0, max_tokens: 100 })")
    question = {"messages": [{"role": "user", "content": "once upon a time"}], "temperature": 0, "max_tokens": 100}
    status, whole = server.post("/v1/chat/completions", question)
    assert status == 200, whole
    for _ in range(2):
        click(browser, '#new')
        browser.write("once upon a time")
        browser.press("Enter")
        browser.wait("current && path_of(current).length === 2 && idle()")
        assert browser.js("path_of(current).at(-1).text") == whole["choices"][0]["message"]["content"]
    figures = browser.js("document.querySelector('.figures').textContent")
    assert f"{whole['usage']['completion_tokens']} tokens" in figures, figures
    click(browser, '#memory')
    browser.wait("/context of the/.test(document.getElementById('parts').innerText)")
    browser.press("Escape")
    # An answer that reached its most tokens continues as if there had been no end.
    browser.js("settings.max_tokens = 10; document.getElementById('new').click()")
    browser.write("once upon a time")
    browser.press("Enter")
    browser.wait("current && path_of(current).length === 2 && idle() && tool('Continue', 'assistant')?.isConnected")
    ten = browser.js("path_of(current).at(-1).text")
    assert whole["choices"][0]["message"]["content"].startswith(ten)
    browser.js("tool('Continue', 'assistant').click()")
    browser.wait(f"path_of(current).at(-1).text.length > {len(ten)} && idle()")
    assert browser.js(f"path_of(current).at(-1).text.startsWith({json.dumps(ten)})")
    # Loaded again while it is written: it is read on.
    browser.js("settings.max_tokens = 900; document.getElementById('new').click()")
    browser.write("once upon a time")
    browser.press("Enter")
    browser.wait("current && path_of(current).length === 2 && path_of(current).at(-1).text.length > 5")
    question["max_tokens"] = 900
    load(browser, server.address)
    browser.wait("current && idle()")
    whole = server.post("/v1/chat/completions", question)[1]
    assert browser.js("path_of(current).at(-1).text") == whole["choices"][0]["message"]["content"]
    # A second turn, stopped.
    browser.js("settings = {}")
    browser.write("and on")
    browser.press("Enter")
    browser.wait("path_of(current).length === 4 && (path_of(current).at(-1).text || idle())")
    browser.press("Escape")
    browser.wait("idle()")
    assert server.idle(), "the page's request continues"
    assert server.post("/v1/chat/completions", question)[1]["choices"] == whole["choices"]
    click(browser, '#new')
    browser.write("x" * 5000)
    browser.press("Enter")
    browser.wait("idle() && /context/.test([...document.querySelectorAll('.problem')].at(-1).textContent)")


def complaints(browser, *urls):
    """Requests to others, and what the browser has to say of the page."""
    found = []
    for method, params in browser.events:
        if method == "Network.requestWillBeSent":
            address = params["request"]["url"]
            if not address.startswith((*urls, "data:", "blob:")):
                found.append(address)
        elif method == "Runtime.exceptionThrown":
            found.append(params["exceptionDetails"])
        elif method == "Log.entryAdded" and params["entry"]["source"] not in ("network",):
            found.append(params["entry"])
    return found


def main():
    if not chromium.find():
        print("skipped: Chromium is not installed (Debian: chromium)")
        sys.exit(77)
    drey, make_toy, pictures = (*sys.argv[1:], None)[:3]
    with tempfile.TemporaryDirectory(prefix="drey page ") as folder:
        subprocess.run([make_toy, f"{folder}/toy.gguf", "3"], check=True)
        server = serve_client.Server(drey, f"{folder}/toy.gguf", "-q", "-d", "lookup", "--sessions", "1", "-c", "1024")
        browser = None
        try:
            _, headers, page = server.wait_ready().request("GET", "/")
            stub = Stub(page, headers["Content-Security-Policy"])
            browser = chromium.Browser(folder)
            for test in test_provisional, test_markdown, test_formulas, test_colours, test_reasoning, test_stop, test_resume, test_models, test_queue, test_edit_and_retry, test_errors, \
                    test_same_answer, test_slow_passes, test_directions, test_two_pages, test_no_storage, \
                    test_full_storage, test_keeping, test_start, test_context, \
                    test_files, test_settings, test_likely:
                print(test.__name__, flush=True)
                test(browser, stub)
            test_looks(browser, stub, pictures)
            test_focus(browser, stub)
            test_server(browser, server)
            found = complaints(browser, stub.url, server.address)
            assert not found, found
        finally:
            if browser:
                browser.close()
            assert server.stop() == 0


if __name__ == "__main__":
    main()
