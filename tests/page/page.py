#!/usr/bin/env python3
"""The page of `drey serve` in Chromium: against the server on a toy, and against a stub that gives
out the same page and answers when the test says so, so that nothing depends on the clock.
Screenshots go to PICTURES where that is named.
    page.py DREY MAKE_TOY [PICTURES]"""
import http.server
import json
import os
import queue
import select
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True  # the tree is not the test's to write to
import chromium
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../serve"))
import serve_client


def text_of(name):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), encoding="utf-8") as f:
        return f.read()


METRICS = text_of("page_metrics.txt")


# ---- A server that does what the test says ----

class Turn:
    """One request for an answer, and what is to be sent for it."""

    def __init__(self, request, headers, path="/"):
        self.request, self.headers, self.path = request, headers, path
        self.n_sent = 0  # bytes of its body
        self.out = queue.Queue()
        self.gone = threading.Event()

    def begin(self):
        self.out.put("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n:\n\n")
        self.event(choices=[{"index": 0, "delta": {"role": "assistant", "content": None}}])
        return self

    def begin_rest(self):
        self.out.put("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n\n")
        return self

    def event(self, **keys):
        self.out.put(f"data: {json.dumps(keys)}\n\n")

    def say(self, text=None, provisional=None, finish=None, delta=None, **keys):
        delta = delta or ({} if text is None else {"content": text})
        drey = {} if provisional is None else {"drey": {"provisional": provisional}}
        self.event(choices=[{"index": 0, "delta": delta, "finish_reason": finish}], **drey, **keys)

    def end(self, tokens=7, finish="stop"):
        self.say(finish=finish)
        self.event(choices=[], usage={"prompt_tokens": 40, "completion_tokens": tokens,
                                      "prompt_tokens_details": {"cached_tokens": 30}},
                   timings={"predicted_n": tokens, "predicted_per_second": 0.52, "predicted_ms": 10000},
                   drey={"ceiling_tokens_per_s": 0.61, "disk_bytes_per_s": 1.2e9, "read_bytes": 1.02e10,
                         "stall_share": 0.71, "drafted": 40, "accepted": 30})
        self.out.put("data: [DONE]\n\n")
        self.out.put(None)

    def refuse(self, status, message, *headers):
        """message: a sentence, or the whole error."""
        error = message if isinstance(message, dict) else {"code": status, "message": message, "type": "x"}
        body = json.dumps({"error": error})
        self.out.put("\r\n".join([f"HTTP/1.1 {status} x", *headers, "Content-Type: application/json",
                                  f"Content-Length: {len(body)}", "Connection: close", "", body]))
        self.out.put(None)


class Stub(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, page, policy):
        self.page, self.policy = page, policy
        self.turns = queue.Queue()
        self.counted = 0
        self.looks = 1  # at the metrics, until a pass ends
        self.keeps_streams = False  # a page may read on
        self.deleted = []  # streams
        self.models = [{"id": "toy-14B", "object": "model", "meta": {"n_params": 14200000000}}]
        self.asked = []  # paths
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def turn(self):
        return self.turns.get(timeout=chromium.PATIENCE_S)


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def give(self, body, kind, status=200, **headers):
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": len(body), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass  # a page that is left asks no more

    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path.startswith("/v1/stream?") and self.server.keeps_streams:
            self.answer(Turn(None, self.headers, self.path))
        elif self.path == "/":
            self.give(self.server.page, "text/html; charset=utf-8",
                      **{"Content-Security-Policy": self.server.policy})
        elif self.path.split("?")[0] == "/metrics":
            self.server.counted += 1
            n = self.server.counted // self.server.looks * self.server.looks
            self.give(METRICS.format(tokens=n, read=2_040_000_000 * n, seconds=2 * n, stall=1.42 * n).encode(), "text/plain")
        elif self.path.split("?")[0] == "/props":
            self.give(b'{"default_generation_settings": {"n_ctx": 4096, "params": {"temperature": 0}}}', "application/json")
        elif self.path == "/v1/models":
            self.give(json.dumps({"object": "list", "data": self.server.models}).encode(), "application/json")
        else:
            self.give(b"{}", "application/json", 404)

    def do_DELETE(self):
        self.server.deleted.append(self.path)
        self.give(b"", "text/plain", 204)

    def do_POST(self):
        self.answer(Turn(json.loads(self.rfile.read(int(self.headers["Content-Length"]))), self.headers))

    def answer(self, turn):
        self.server.turns.put(turn)
        while True:
            try:
                data = turn.out.get(timeout=0.05)
            except queue.Empty:  # has the page hung up?
                if not select.select([self.connection], [], [], 0)[0]:
                    continue
                turn.gone.set()
                break
            if data is None:
                break
            try:
                self.wfile.write(data.encode())
                turn.n_sent += len(data.encode().split(b"\r\n\r\n")[-1])
            except OSError:
                turn.gone.set()
                break
        self.close_connection = True


# ---- What is looked at ----

WATCH = text_of("page_watch.js")


def load(browser, url):
    browser.open(url)
    browser.js(WATCH)


def fresh(browser, url):
    """The page with nothing kept."""
    browser.open(url)
    browser.js("localStorage.clear()")
    load(browser, url)


def ask(browser, stub, text):
    browser.js("document.getElementById('text').focus()")
    browser.write(text)
    browser.press("Enter")
    return stub.turn()


def is_solid(browser, text):
    browser.wait(f"solid_now() === {json.dumps(text)}", f"solid: {text!r}")


def is_provisional(browser, text):
    browser.wait(f"provisional_now() === {json.dumps(text)}", f"provisional: {text!r}")


def messages(turn):
    return [(m["role"], m["content"]) for m in turn.request["messages"]]


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
    turn.end()
    browser.wait("idle()")
    seen = browser.js("solid")
    assert all(after.startswith(before) for before, after in zip(seen, seen[1:])), seen
    said = browser.js("said.join(' ')")
    assert "cat sat." in said and "fox" not in said and "dog" not in said and "int y" not in said, said
    figures = browser.js("document.querySelector('.figures').textContent")
    assert "7 tokens · 0.52 tokens/s · 75 % of drafts accepted · reused 30 of 40" in figures, figures
    for part in "0.52 of 0.61 tokens/s", "973M of 1.12G/s", "71 %", "2.36G of 2.50G":
        browser.wait(f"document.getElementById('strip').innerText.replaceAll('\\n', ' ').includes('{part}')")
    browser.js("document.getElementById('memory').click()")
    assert "weights kept in memory" in browser.js("document.getElementById('parts').innerText")
    browser.press("Escape")
    assert browser.js("document.getElementById('parts').hidden")


MARKDOWN = text_of("page_sample.md").rstrip("\n")


def test_markdown(browser, stub):
    fresh(browser, stub.url)
    turn = ask(browser, stub, "Show *all*.").begin()
    for at in range(0, len(MARKDOWN), 7):  # cut anywhere
        turn.say(MARKDOWN[at:at + 7])
    turn.end()
    browser.wait("idle()")
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
    shown = lambda text, what: browser.js("(() => { const box = document.createElement('div'); draw_markdown(box, %s);"
                                          "return %s; })()" % (json.dumps(text), what))
    for text, wanted in (("**a *b* c**", "<strong>a <em>b</em> c</strong>"), ("***x***", "<em><strong>x</strong></em>"),
                         ("*a **b***", "<em>a <strong>b</strong></em>"), ("2 * 3*4 _a_b_", "2 * 3*4 <em>a_b</em>"),
                         ("**(**a) **b**", "**(**a) <strong>b</strong>"), ("a  \nb\\\nc", "a<br>b<br>c"),
                         ("&copy; &#65;&#x42; &amp;lt; &nosuch;", "© AB &amp;lt; &amp;nosuch;"), ("~~a *b*~~", "<del>a <em>b</em></del>")):
        assert shown(text, "box.firstChild.innerHTML") == wanted, (text, shown(text, "box.innerHTML"))
    assert shown("Title\n=====\nand\n---\n\n    code\n\n      more\n\ntext", "[...box.children].map((x) => x.localName + ' ' + "
                 "(x.querySelector('code') || x).textContent).join('|')") == "h1 Title|h2 and|div code\n\n  more|p text"
    assert shown("- [x] done\n- [ ] not", "[...box.querySelectorAll('li.task')].map((li) => [li.textContent, li.firstChild.checked])") == \
        [["done", True], ["not", False]]
    assert shown("H<sub>2</sub>O<br>x<sup>*2*</sup> <sub>", "box.innerHTML") == \
        '<p dir="auto">H<sub>2</sub>O<br>x<sup><em>2</em></sup> &lt;sub&gt;</p>'
    for text, wanted in BLOCKS:
        got = shown(text.replace("\\n", "\n").replace("\\t", "\t"), """(function short(node) {
            if (node.nodeType === Node.TEXT_NODE) return node.data.replaceAll("\\n", " ").replaceAll("\\t", "\\\\t")
                .replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
            if (node.matches(".bar")) return "";
            const inside = node.matches("math") ? "" : [...node.childNodes].map(short).join("");
            const number = node.getAttribute("start") || node.getAttribute("value");
            const tag = node.localName.replace("code", node.closest("pre") ? "span" : "code");
            return ["div", "span", "thead", "tbody"].includes(tag) ? inside : `<${tag}${number ? " " + number : ""}>${inside}</${tag}>`;
        })(box)""")
        assert got == wanted, (text, got, wanted)
    for hostile in "[a][" * 9000, "[x]: " * 9000, "[" * 3000 + "](https://e.org)", "- > " * 9000, "> a\nb\n" * 9000, "[a\n" * 9000 + "]: https://e.org", \
            "<details>" * 9000, "<details>\n" * 9000, "</details>" * 9000, "<details>\n" * 3000 + "</details>\n" * 3000, \
            "\\begin{a}" * 9000, "\\begin{align}\n" * 9000, "\\begin{align}\n" * 2000 + "\\end{align}\n" * 2000, \
            "$$\n" * 9000, "\t- " * 9000, "<a@" * 9000, "[^a]: b\n" * 5000 + "[^a]" * 5000, "[x]: https://e.org\n" * 3000 + "[" * 3000, "1. " * 9000:
        assert browser.js("(draw_markdown(document.createElement('div'), %s), true)" % json.dumps(hostile + "\nx"))
    for hostile in "*" * 20000, "\\(" * 20000, "$$" * 20000, "<sub>" * 9000, "[" * 20000, "`" * 20000 + " x", "> " * 20000, "- " * 20000, "a_" * 20000, \
            "# " + " " * 20000 + "x", "|-" * 20000, "`a" * 20000, "**a *b " * 5000, "[a](" * 9000, "http://" * 9000, "$a" * 20000, "$" * 20001, \
            "$" + "{" * 9000 + "$", "\\(" + "\\frac" * 900 + "\\)", "```c\n" + "/*" * 20000, "```py\n" + "'" * 40000, "```c\n" + "a1" * 20000:
        assert browser.js("(draw_markdown(document.createElement('div'), %s), true)" % json.dumps(hostile + "\nx"))


BLOCKS = [line.split("\t") for line in text_of("page_markdown.txt").splitlines() if line and line[0] != "#"]
FORMULAS = [line.split("\t") for line in text_of("page_formulas.txt").splitlines() if line and line[0] != "#"]


def test_formulas(browser, stub):
    """TeX becomes MathML; what is no formula, or cannot be read, stays as it is written."""
    fresh(browser, stub.url)
    browser.js("""window.drawn = (text) => {
        const short = (node) => node.nodeType === Node.TEXT_NODE ? node.data : node.localName +
            (node.children.length ? `(${[...node.children].map(short).join(" ")})` : `:${node.textContent}`);
        const box = document.createElement("div");
        draw_markdown(box, text);
        const found = [...box.querySelectorAll("math")];
        return found.length ? found.map((math) => short(math.firstChild)).join(" ; ") : "-";
    };""")
    for text, wanted in FORMULAS:
        got = browser.js(f"drawn({json.dumps(text)}).normalize().replaceAll('\\u00A0', ' ')")
        assert got == wanted, (text, got, wanted)
        if wanted == "-" and text.endswith("\\)"):  # whole, with its marks
            shown = browser.js("(() => { const box = document.createElement('div'); draw_markdown(box, %s); return box.textContent; })()"
                               % json.dumps(text))
            assert shown == text, (text, shown)
    assert browser.js("drawn('$$\\na_1\\n+ b\\n$$')") == "mrow(msub(mi:a mn:1) mo:+ mi:b)"
    # It is drawn as one: a fraction is higher than a letter.
    turn = ask(browser, stub, "A formula?").begin()
    turn.say("So \\(\\frac{a}{b}\\) and \\(a\\), $5 and $6.\n\n$$\\sum_{i=1}^n i$$")
    turn.end()
    browser.wait("idle() && document.querySelectorAll('math').length === 3")
    # Columns of equations meet at their signs.
    turn = ask(browser, stub, "Lines?").begin()
    turn.say("\\begin{align}\nx &= 1 \\\\\nx + y + z &= 2\n\\end{align}")
    turn.end()
    browser.wait("idle() && document.querySelectorAll('math').length === 4")
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
    turn.end()
    browser.wait("idle() && document.querySelectorAll('.fence').length === 4")
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
    """What a model thinks is folded, whether it comes apart or between marks; calls are shown."""
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
    turn.end()
    browser.wait("idle()")
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
    turn.end(finish="tool_calls")
    browser.wait("idle()")
    load(browser, stub.url)
    shown = browser.js("document.querySelector('.call').textContent")
    assert shown == 'Calls look_up{\n "word": "<b>"\n}', shown
    thinks("Let me see.")
    is_solid(browser, "Yes.")
    assert "Let me see" not in browser.js("said.join(' ')")


def test_stop(browser, stub):
    fresh(browser, stub.url)
    for press in (lambda: browser.press("Escape"), lambda: browser.js("document.getElementById('send').click()")):
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
    turn.end()
    browser.wait("idle() && solid_now() === 'One, two, three.' && !tool('Continue', 'assistant')")
    turn = ask(browser, stub, "And then?").begin()
    assert messages(turn)[-2:] == [("assistant", "One, two, three."), ("user", "And then?")]
    assert "continue_final_message" not in turn.request
    turn.end()
    browser.wait("idle()")


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
    third.end()
    browser.wait("idle() && solid_now() === 'Ein, zw\u00e4\u00e4, drei, vier.'")
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
    browser.js("document.getElementById('new').click()")
    assert browser.js(f"{box}.value") == "b"  # the last one that was chosen
    browser.js(f"{box}.value = 'a model'; {box}.dispatchEvent(new Event('change'))")
    turn = ask(browser, stub, "And you?").begin()
    assert turn.request["model"] == "a model"
    turn.end()
    browser.wait("idle()")
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
    browser.js("document.querySelector('#queued button').click()")
    assert not browser.js(waits) and browser.js("document.activeElement.id") == "text"
    browser.press("Enter")
    browser.js("document.getElementById('new').click()")
    assert not browser.js(waits) and browser.js(typed) == ""
    turn.say(".")
    turn.end()
    turn = stub.turn().begin()  # it goes also where its conversation is not shown
    assert messages(turn) == [("user", "A?"), ("assistant", "a."), ("user", "B?")], messages(turn)
    assert browser.js("current") is None
    browser.js("document.querySelector('#chats .name').click()")
    assert browser.js(typed) == ""
    turn.say("b")
    is_solid(browser, "b")
    browser.js("document.getElementById('text').focus()")
    browser.write("C?")
    browser.press("Enter")
    browser.js("document.getElementById('send').click()")  # which stops
    assert turn.gone.wait(chromium.PATIENCE_S)
    browser.wait("idle() && /your message was not sent/.test(document.getElementById('notice').textContent)")
    assert browser.js(typed) == "C?" and browser.js("path_of(current).length") == 4
    browser.press("Enter")
    turn = stub.turn().begin()
    assert messages(turn)[-1] == ("user", "C?")
    turn.end()
    browser.wait("idle()")


def test_edit_and_retry(browser, stub):
    fresh(browser, stub.url)
    for question, answer in ("A?", "a."), ("B?", "b."):
        turn = ask(browser, stub, question).begin()
        turn.say(answer)
        turn.end()
        browser.wait("idle()")
    browser.js("tool('Retry', 'assistant').click()")
    turn = stub.turn().begin()
    assert messages(turn) == [("user", "A?"), ("assistant", "a."), ("user", "B?")]
    turn.say("second b.")
    turn.end()
    browser.wait("idle() && solid_now() === 'second b.'")
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
    again.end()
    browser.wait("idle()")
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
    turn.end()
    browser.wait("idle()")


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
    turn.end()
    browser.wait("idle()")
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
    """Where nothing is left to chance, asking again says so, and offers another way."""
    fresh(browser, stub.url)
    turn = ask(browser, stub, "A?").begin()
    turn.say("a.")
    turn.end(tokens=1)
    browser.wait("idle()")
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
    turn.end()
    browser.wait("idle()")
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
    turn.end()
    browser.wait("idle()")
    stub.looks = 1


def test_directions(browser, stub):
    """Text that is written from right to left stands so, block by block; code does not."""
    fresh(browser, stub.url)
    turn = ask(browser, stub, "\u05e9\u05dc\u05d5\u05dd, drey!").begin()
    turn.say("\u0645\u0631\u062d\u0628\u0627 drey.\n\nLatin.\n\n- \u0623\u0644\u0641\n- \u0628\u0627\u0621\n\n```\nx = 1\n```\n\n| \u0623 | b |\n|--|--|\n| 1 | 2 |\n")
    turn.end()
    browser.wait("idle()")
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


def test_two_pages(browser, stub):
    """Two pages with one conversation both add to it; one that is deleted stays deleted."""
    fresh(browser, stub.url)
    first = browser.session
    one = ask(browser, stub, "First?").begin()
    one.say("One, ")
    is_solid(browser, "One,")
    browser.js("save_answers()")
    second = browser.new_page()
    load(browser, stub.url)
    browser.wait("solid_now() === 'One,'")
    # It is said that the other page writes, for as long as that is so.
    ends = "[...document.querySelectorAll('.problem:not([hidden])')].map((p) => p.textContent)[0]"
    assert browser.js(ends) == "Being written in another page."
    assert browser.js("!tool('Continue', 'assistant') && !tool('Retry', 'assistant')")
    browser.js("Date.now = ((now) => () => now() + 1e6)(Date.now)")
    browser.wait(f"{ends} === 'The answer was cut short.' && tool('Continue', 'assistant').isConnected")
    load(browser, stub.url)
    browser.wait("!idle() && tool('Copy', 'assistant') === undefined")
    # A message waits there until the answer is whole; what is typed takes it back.
    browser.js("document.getElementById('text').focus()")
    browser.write("Second")
    waits = "!document.getElementById('queued').hidden"
    browser.press("Enter")
    assert browser.js(waits) and "sent when the answer has ended" in browser.js("document.getElementById('queued').textContent")
    browser.write("?")
    assert not browser.js(waits)
    browser.press("Enter")
    assert browser.js(waits) and browser.js("document.getElementById('text').value") == "Second?"
    for text, session in ("two, ", first), ("three.", second):
        one.say(text)
        browser.session = first
        browser.wait(f"solid_now().endsWith({json.dumps(text.strip())})")
        browser.js("answers.get(current.id).saved = -1e9")
        browser.session = session
        browser.wait("!idle() && solid_now().startsWith('One, two,')")
    assert browser.js(waits) and stub.turns.empty()
    one.say(" Four.")
    one.end()
    two = stub.turn().begin()
    assert messages(two) == [("user", "First?"), ("assistant", "One, two, three. Four."), ("user", "Second?")], messages(two)
    assert not browser.js(waits) and browser.js("document.getElementById('text').value") == ""
    browser.session = first  # where nothing was typed, the message appears
    browser.wait("path_of(current).length === 4 && !idle()")
    browser.session = second
    two.say("Its answer.")
    two.end()
    browser.wait("idle() && path_of(current).length === 4")
    texts = "Object.values(current.nodes).map(({ text }) => text)"
    wanted = ["First?", "One, two, three. Four.", "Second?", "Its answer."]
    for session in first, second:
        browser.session = session
        browser.wait(f"JSON.stringify({texts}) === {json.dumps(json.dumps(wanted, separators=(',', ':')))}", texts)
    for session in first, second:
        browser.session = session
        load(browser, stub.url)
        assert browser.js(texts) == wanted, browser.js(texts)
        assert browser.js("path_of(current).length") == 4
    # The other page can stop it, and then nothing that waits is sent.
    browser.session = first
    turn = ask(browser, stub, "Stop?").begin()
    turn.say("On and ")
    is_solid(browser, "On and")
    browser.js("save_answers()")
    browser.session = second
    browser.wait("!idle() && solid_now() === 'On and'")
    browser.js("document.getElementById('text').focus()")
    browser.write("Not sent.")
    browser.press("Enter")
    assert browser.js(waits)
    browser.press("Escape")
    assert turn.gone.wait(chromium.PATIENCE_S), "the other page did not stop"
    browser.wait("idle() && /your message was not sent/.test(document.getElementById('notice').textContent)")
    assert browser.js("document.getElementById('text').value") == "Not sent." and not browser.js(waits)
    browser.js("keep_unsent(document.getElementById('text').value = '')")
    # A page that is left in the middle hands its answer over: it comes whole into what waits.
    stub.keeps_streams = True
    browser.session = first
    turn = ask(browser, stub, "Third?").begin()
    turn.say("Half ")
    is_solid(browser, "Half")
    browser.js("save_answers()")
    browser.session = second
    browser.wait("!idle() && solid_now() === 'Half'")
    browser.js("document.getElementById('text').focus()")
    browser.write("Fourth?")
    browser.press("Enter")
    assert browser.js(waits)
    browser.session = first
    browser.call("Page.navigate", url="about:blank")
    again = stub.turn().begin_rest()
    again.say("and half.")
    again.end()
    fourth = stub.turn().begin()
    assert messages(fourth)[-2:] == [("assistant", "Half and half."), ("user", "Fourth?")], messages(fourth)
    fourth.end()
    stub.keeps_streams = False
    browser.session = second
    browser.wait("idle()")
    browser.session = first
    load(browser, stub.url)
    turn = ask(browser, stub, "Fifth?").begin()
    turn.say("Never ")
    is_solid(browser, "Never")
    browser.session = second
    browser.js("document.querySelector('#chats .tool[aria-label^=Delete]').click()")
    browser.js("document.querySelector('#delete-dialog button.main').click()")
    assert turn.gone.wait(chromium.PATIENCE_S), "a page writes on in a conversation that was deleted"
    browser.session = first
    browser.wait("current === null && chats.size === 0 && /deleted/.test(document.getElementById('notice').textContent)")
    # What a page writes that has not heard of it is deleted as well.
    browser.js("localStorage.setItem(Object.keys(localStorage).find((key) => key.startsWith('drey.gone.'))"
               ".replace('gone', 'chat'), '{\"title\":\"back\"}')")
    load(browser, stub.url)
    assert browser.js("[chats.size, Object.keys(localStorage).filter((key) => /chat|node/.test(key)).length]") == [0, 0]
    browser.session = second
    browser.call("Page.close")
    browser.session = first


def test_no_storage(browser, stub):
    """A page that may keep nothing works, and says so."""
    denied = """for (const name of ["localStorage", "sessionStorage"])
        Object.defineProperty(window, name, { get() { throw new DOMException("denied", "SecurityError"); } });"""
    script = browser.call("Page.addScriptToEvaluateOnNewDocument", source=denied)["identifier"]
    load(browser, stub.url)
    unsaved = "document.getElementById('unsaved')"
    assert "lets this page keep" in browser.js(f"{unsaved}.textContent").replace("let this", "lets this") and not browser.js(f"{unsaved}.hidden")
    turn = ask(browser, stub, "Who is there?").begin()
    turn.say("Me.")
    turn.end()
    browser.wait("idle() && solid_now() === 'Me.'")
    browser.js("document.getElementById('theme').click(); document.getElementById('new').click()")
    browser.js("[...document.querySelectorAll('#chats .name')][0].click()")
    is_solid(browser, "Me.")
    browser.js("document.querySelector('#chats .tool[aria-label^=Delete]').click()")
    browser.js("document.querySelector('#delete-dialog button.main').click()")
    browser.wait("chats.size === 0 && unsaved.size === 0")
    browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)


def test_full_storage(browser, stub):
    """Where there is no room that is said for as long as it is so; once there is, all is kept."""
    fresh(browser, stub.url)
    turn = ask(browser, stub, "Old?").begin()
    turn.end()
    browser.wait("idle()")
    browser.js("document.getElementById('new').click()")
    browser.js("""for (let n = 1 << 22, filler = ""; n >= 1; n >>= 1)
        try { localStorage.setItem("filler", filler + "x".repeat(n)); filler += "x".repeat(n); } catch {}""")
    unsaved = "document.getElementById('unsaved')"
    turn = ask(browser, stub, "Is there room?").begin()
    turn.say("No.")
    turn.end()
    browser.wait("idle()")
    assert not browser.js(f"{unsaved}.hidden") and "no more room" in browser.js(f"{unsaved}.textContent")
    browser.js("""addEventListener("beforeunload", (event) => (window.held = event.defaultPrevented));
        dispatchEvent(new Event("beforeunload", { cancelable: true }))""")
    assert browser.js("held")
    browser.js("localStorage.removeItem('filler')")
    browser.js("document.querySelector('#chats .tool[aria-label=\"Delete Old?\"]').click()")
    browser.js("document.querySelector('#delete-dialog button.main').click()")
    browser.wait(f"{unsaved}.hidden")
    load(browser, stub.url)
    assert browser.js("[...chats.values()].map((chat) => path_of(chat).map(({ text }) => text))") == [["Is there room?", "No."]]


def test_keeping(browser, stub):
    fresh(browser, stub.url)
    titles = "[...document.querySelectorAll('#chats .name')].map((b) => b.textContent)"
    turn = ask(browser, stub, "First").begin()
    turn.say("one.")
    turn.end()
    browser.wait("idle()")
    browser.js("document.getElementById('new').click()")
    assert browser.js("document.querySelector('#welcome') !== null")
    turn = ask(browser, stub, "Second").begin()
    turn.say("An answer that")
    browser.wait(f"JSON.parse(localStorage.getItem('drey.chat.' + current.id)).leaf === current.leaf && "
                 "solid_now() === 'An answer that'")
    # Two answers at once, each in its conversation.
    browser.js("[...document.querySelectorAll('#chats .name')].find((b) => b.textContent === 'First').click()")
    other = ask(browser, stub, "First, on").begin()
    other.say("two.")
    other.end()
    browser.wait("idle()")
    assert browser.js("document.querySelectorAll('#chats .busy').length") == 1
    browser.js("[...document.querySelectorAll('#chats .name')].find((b) => b.textContent === 'Second').click()")
    is_solid(browser, "An answer that")
    turn.say(" goes on")  # an answer is kept up to where the page was left
    is_solid(browser, "An answer that goes on")
    browser.write("not yet sent")
    load(browser, stub.url)
    assert turn.gone.wait(chromium.PATIENCE_S)
    is_solid(browser, "An answer that goes on")
    cut = browser.js("document.querySelector('.assistant .problem').textContent")
    assert cut == "The answer was cut short.", cut
    # What is typed stays, with its conversation.
    typed = "document.getElementById('text').value"
    assert browser.js(typed) == "not yet sent"
    for name, text in ("First", ""), ("Second", "not yet sent"):
        browser.js(f"[...document.querySelectorAll('#chats .name')].find((b) => b.textContent === '{name}').click()")
        assert browser.js(typed) == text, (name, browser.js(typed))
    assert sorted(browser.js(titles)) == ["First", "Second"]
    browser.js("[...document.querySelectorAll('#chats .tool')].find((b) => b.ariaLabel === 'Rename Second').click()")
    browser.wait("document.activeElement.ariaLabel === 'Name of the conversation'")
    browser.js("document.activeElement.select()")
    browser.write("Renamed")
    browser.press("Enter")
    assert "Renamed" in browser.js(titles)
    # Exported, deleted, imported: as it was.
    browser.js("""(() => {
        const create = URL.createObjectURL;
        URL.createObjectURL = (blob) => (window.exported = blob.text(), create(blob));
        document.getElementById("export").click();
    })()""")
    exported = json.loads(browser.js("exported"))
    assert exported["format"] == "drey-conversations" and len(exported["conversations"]) == 2
    assert "secret" not in json.dumps(exported)
    for left in 1, 0:
        browser.js("document.querySelector('#chats .tool[aria-label^=Delete]').click()")
        browser.js("document.querySelector('#delete-dialog button.main').click()")
        browser.wait(f"{titles}.length === {left}")
    load(browser, stub.url)
    assert browser.js(titles) == []
    exported["conversations"].append({"id": "x", "nodes": {"a": {"id": "a", "parent": "nowhere"}}})
    put = lambda text: browser.js("import_chats(new File([%s], 'f.json'))" % json.dumps(text))
    put(json.dumps(exported))
    assert browser.js("document.getElementById('notice').textContent") == \
        "Imported 2 conversations; 1 could not be read."
    assert sorted(browser.js(titles)) == ["First", "Renamed"]
    put("[1, 2")
    assert "f.json holds no conversations" in browser.js("document.getElementById('notice').textContent")


def test_start(browser, stub):
    """An empty page says what the model is; conversations are found by their words."""
    fresh(browser, stub.url)
    facts = browser.wait("document.getElementById('facts')?.children.length >= 10 && document.getElementById('facts').innerText")
    assert facts.split("\n") == ["Model", "toy-14B", "Parameters", "14.2 billion", "Context", "4096 tokens",
                                 "Memory budget", "2.50G", "At most", "0.61 tokens/s"], facts
    browser.js("document.querySelector('.examples button').click()")
    assert browser.js("document.activeElement.id === 'text' && document.getElementById('text').value").startswith("Explain")
    browser.js("keep_unsent(document.getElementById('text').value = '')")
    for question, answer in ("Apples?", "Red ones."), ("Pears?", "Green ones."):
        turn = ask(browser, stub, question).begin()
        turn.say(answer)
        turn.end()
        browser.wait("idle()")
        browser.js("document.getElementById('new').click()")
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
    """How full the context is, and a warning before it is full."""
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
    browser.js("document.getElementById('new').click()")
    browser.wait(f"{used} === '– of 4096'")
    # Before it is refused that is said: of what the server has not counted, and of what is typed.
    full = "document.getElementById('full')"
    browser.js("document.getElementById('text').focus()")
    browser.write("word " * 3000)
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
    browser.js("document.getElementById('text').focus()")
    browser.write("word")
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
    browser.js("document.querySelector('[aria-label=\"Remove b.txt\"]').click()")
    browser.wait(f"{chips} === 'a.py13 B'")
    turn = ask(browser, stub, "What is it?").begin()
    wanted = [("user", "File a.py:\n````\nprint(1)\n```\n````\n\nWhat is it?")]
    assert messages(turn) == wanted, messages(turn)
    turn.say("Code.")
    turn.end()
    browser.wait("idle() && document.getElementById('files').hidden")
    load(browser, stub.url)
    assert browser.js("document.querySelector('.user summary').textContent") == "a.py 13 B"
    assert browser.js("document.querySelector('.user .body').textContent") == "What is it?"
    browser.js("tool('Retry', 'assistant').click()")
    turn = stub.turn().begin()
    assert messages(turn) == wanted
    turn.end()
    browser.wait("idle()")


def test_settings(browser, stub):
    fresh(browser, stub.url)
    browser.js("document.getElementById('settings').click()")
    sampling = {"temperature": 0.7, "top_p": 0.9, "top_k": 20, "min_p": 0.05, "repeat_penalty": 1.1, "presence_penalty": 0.5,
                "frequency_penalty": -0.5, "max_tokens": 64, "seed": 7}
    browser.js("document.querySelector('#settings-form details').open = true")
    for name, value in {"system": "Be brief.", "stop": "END\n###", **sampling}.items():
        browser.js(f"document.getElementById('settings-form').elements.{name}.focus()")
        browser.write(str(value))
    browser.press("Enter")
    browser.wait("settings.seed === 7")
    load(browser, stub.url)
    browser.js("document.getElementById('text').focus()")
    browser.write("Line one")
    browser.press("Enter", shift=True)
    turn = ask(browser, stub, "line two").begin()
    assert messages(turn) == [("system", "Be brief."), ("user", "Line one\nline two")], messages(turn)
    assert {key: turn.request.get(key) for key in sampling} == sampling, turn.request
    assert turn.request["stop"] == ["END", "###"]
    turn.end(finish="length")
    browser.wait("idle() && /^Cut here/.test(document.querySelector('.assistant .problem').textContent)")
    browser.js("document.getElementById('theme').click()")
    assert browser.js("document.documentElement.dataset.theme") == "light"  # the system's is dark
    load(browser, stub.url)
    assert browser.js("document.documentElement.dataset.theme") == "light"
    # A system prompt belongs to its conversation; what is as the server has it is not sent.
    browser.wait("usual.temperature === 0")
    browser.js("document.getElementById('settings').click()")
    assert browser.js("document.activeElement.name") == "chat_system"
    browser.js("document.activeElement.select()")
    browser.write("Rhyme.")
    browser.js("document.getElementById('settings-form').elements.temperature.value = '0'")
    browser.js("document.querySelector('#settings-form button.main').click()")
    browser.wait("settings.temperature === 0")
    for wanted in "Rhyme.", "Be brief.":
        browser.wait("usual.temperature === 0")
        turn = ask(browser, stub, "Now?").begin()
        assert messages(turn)[0] == ("system", wanted) and "temperature" not in turn.request, turn.request
        turn.end()
        browser.wait("idle()")
        load(browser, stub.url)
        browser.js("document.getElementById('new').click()")


def test_likely(browser, stub):
    """How likely each token was, and what else was: text, whatever it says."""
    fresh(browser, stub.url)
    turn = ask(browser, stub, "A?")
    assert "logprobs" not in turn.request
    turn.begin().say("a.")
    turn.end()
    browser.wait("idle()")
    assert browser.js("tool('Probabilities of the tokens', 'assistant') === undefined")
    browser.js("document.getElementById('settings').click()")
    browser.js("document.getElementById('settings-form').elements.likely.value = 'yes'")
    browser.js("document.querySelector('#settings-form button.main').click()")
    browser.wait("settings.likely === 'yes'")
    turn = ask(browser, stub, "B?").begin()
    assert turn.request["logprobs"] is True and turn.request["top_logprobs"] == 5, turn.request
    token = lambda text, logprob, *others: {"token": text, "logprob": logprob, "top_logprobs": [
        {"token": other, "logprob": share} for other, share in ((text, logprob), *others)]}
    for content in [token("The", -0.01)], [token(" <b>", -0.6, (" *", -0.9)), token(" \n", -4, ("x", -0.02))]:
        turn.event(choices=[{"index": 0, "delta": {"content": "".join(one["token"] for one in content)}, "logprobs": {"content": content}}])
    turn.end()
    browser.wait("idle() && tool('Probabilities of the tokens', 'assistant')?.isConnected")
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
    turn = ask(browser, stub, "How does a model that is larger than memory write text?").begin()
    turn.say(MARKDOWN.replace("never closed", "never` closed, " + "x" * 200))
    turn.end()
    browser.wait("idle()")
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
    browser.js("document.getElementById('menu').click()")
    browser.wait("getComputedStyle(document.getElementById('side')).visibility === 'visible'")
    if pictures:
        browser.picture(f"{pictures}/menu.png")
    browser.press("Escape")
    assert browser.js("!document.getElementById('side').classList.contains('open') && !idle()")
    browser.js("document.getElementById('settings').click()")
    assert not unnamed(browser), unnamed(browser)
    if pictures:
        browser.picture(f"{pictures}/settings.png")
    browser.press("Escape")
    turn.end()
    browser.wait("idle()")
    turn = ask(browser, stub, "Sums, and how to compute one?").begin()
    turn.say(delta={"reasoning_content": "A geometric series, then a loop."})
    turn.say("A sum\n\n$$\\sum_{k=0}^{n} q^k = \\frac{1-q^{n+1}}{1-q}$$\n\nwith \\(q \\ne 1\\), and "
             "\\[A = \\begin{pmatrix} a & b \\\\ \\sqrt{c} & \\hat{d} \\end{pmatrix}\\]\n\n```c\n"
             "/* The same, term by term. */\nfor (int k = 0; k <= n; k++)\n    sum += pow(q, k);\nprintf(\"%g\\n\", sum);\n```\n")
    turn.end()
    browser.wait("idle() && document.querySelectorAll('math').length === 3")
    for width, height, scheme in (1100, 800, "light"), (390, 844, "dark"):
        browser.screen(width, height, scheme, mobile=width < 500)
        browser.wait(f"innerWidth === {width} && document.documentElement.dataset.theme === '{scheme}'")
        assert browser.js("document.getElementById('log').scrollWidth - document.getElementById('log').clientWidth") <= 0
        if pictures:
            browser.picture(f"{pictures}/formulas-{width}.png")
    browser.js("document.getElementById('new').click()")
    for width, height, scheme in (390, 844, "dark"), (1100, 800, "light"):
        browser.screen(width, height, scheme, mobile=width < 500)
        browser.wait(f"innerWidth === {width} && document.documentElement.dataset.theme === '{scheme}'")
        for selector in "#facts dt", "#facts dd", ".examples button", "#attach":
            assert browser.js(f"contrast('{selector}')") >= 4.5, (scheme, selector)
        if pictures:
            browser.picture(f"{pictures}/start-{width}.png")
    browser.js("document.querySelector('#chats .name').click()")


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
        browser.js("document.getElementById('new').click()")
        browser.write("once upon a time")
        browser.press("Enter")
        browser.wait("current && path_of(current).length === 2 && idle()")
        assert browser.js("path_of(current).at(-1).text") == whole["choices"][0]["message"]["content"]
    figures = browser.js("document.querySelector('.figures').textContent")
    assert f"{whole['usage']['completion_tokens']} tokens" in figures, figures
    browser.js("document.getElementById('memory').click()")
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
    browser.js("document.getElementById('new').click()")
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
