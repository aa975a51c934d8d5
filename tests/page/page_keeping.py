"""Conversations that the page keeps, in one page and in several: see page.py."""
import json

import chromium
from driven_page import answered, ask, click, delete_chat, finish, fresh, is_solid, load, messages, type_text


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
    type_text(browser, "Second")
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
    finish(browser, two, and_="path_of(current).length === 4")
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
    type_text(browser, "Not sent.")
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
    type_text(browser, "Fourth?")
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
    delete_chat(browser)
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
    finish(browser, turn, and_="solid_now() === 'Me.'")
    browser.js("document.getElementById('theme').click(); document.getElementById('new').click()")
    browser.js("[...document.querySelectorAll('#chats .name')][0].click()")
    is_solid(browser, "Me.")
    delete_chat(browser)
    browser.wait("chats.size === 0 && unsaved.size === 0")
    browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)


def test_full_storage(browser, stub):
    """Lack of room is said for as long as it lasts; once there is room, all is kept."""
    fresh(browser, stub.url)
    answered(browser, stub, "Old?")
    click(browser, '#new')
    browser.js("""for (let n = 1 << 22, filler = ""; n >= 1; n >>= 1)
        try { localStorage.setItem("filler", filler + "x".repeat(n)); filler += "x".repeat(n); } catch {}""")
    unsaved = "document.getElementById('unsaved')"
    answered(browser, stub, "Is there room?", "No.")
    assert not browser.js(f"{unsaved}.hidden") and "no more room" in browser.js(f"{unsaved}.textContent")
    browser.js("""addEventListener("beforeunload", (event) => (window.held = event.defaultPrevented));
        dispatchEvent(new Event("beforeunload", { cancelable: true }))""")
    assert browser.js("held")
    browser.js("localStorage.removeItem('filler')")
    delete_chat(browser, '="Delete Old?"')
    browser.wait(f"{unsaved}.hidden")
    load(browser, stub.url)
    assert browser.js("[...chats.values()].map((chat) => path_of(chat).map(({ text }) => text))") == [["Is there room?", "No."]]


def test_keeping(browser, stub):
    fresh(browser, stub.url)
    titles = "[...document.querySelectorAll('#chats .name')].map((b) => b.textContent)"
    answered(browser, stub, "First", "one.")
    click(browser, '#new')
    assert browser.js("document.querySelector('#welcome') !== null")
    turn = ask(browser, stub, "Second").begin()
    turn.say("An answer that")
    browser.wait(f"JSON.parse(localStorage.getItem('drey.chat.' + current.id)).leaf === current.leaf && "
                 "solid_now() === 'An answer that'")
    # Two answers at once, each in its conversation.
    browser.js("[...document.querySelectorAll('#chats .name')].find((b) => b.textContent === 'First').click()")
    other = ask(browser, stub, "First, on").begin()
    other.say("two.")
    finish(browser, other)
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
        delete_chat(browser)
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
