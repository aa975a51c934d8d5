#!/usr/bin/env python3
"""Streams that outlive their connections (X-Conversation-Id, /v1/stream): an answer is read on
after a client has hung up, from any byte, by several readers; it is stopped, replaced, given up; of
a long one the last bytes are kept; what asks for nothing that is there is refused.
    serve_streams.py DREY FOLDER (with toy.gguf)"""
import json, os, sys, urllib.parse

sys.dont_write_bytecode = True  # the tree is not the test's to write to
import serve_client
from serve_client import check

CHAT = "/v1/chat/completions"
QUESTION = {"messages": [{"role": "user", "content": "once upon a time"}], "temperature": 0, "seed": 1, "stream": True,
            "stream_options": {"include_usage": True}}


class Reader:
    """An answer's bytes as they come; chunks are taken apart by http.client."""

    def __init__(self, server, method, path, body=None, headers=None):
        self.connection = server.connection()
        self.connection.request(method, path, body and json.dumps(body), headers or {})
        self.reply = self.connection.getresponse()
        self.status = self.reply.status

    def read(self, n=None):
        return self.reply.read(n) if n else self.reply.read()

    def hang_up(self):
        self.connection.sock.close()
        self.reply.close()


def ask(server, name, **keys):
    return Reader(server, "POST", CHAT, {**QUESTION, **keys}, {"X-Conversation-Id": name})


def address(name, start=None):
    return "/v1/stream?conv_id=" + urllib.parse.quote(name, safe="") + ("" if start is None else f"&from={start}")


def text_of(stream):
    events = [line[6:] for line in stream.decode().split("\n\n") if line.startswith("data: ")]
    check(events[-1] == "[DONE]", f"a stream ends with {events[-1]!r}")
    return "".join(choice["delta"].get("content") or "" for event in events[:-1]
                   for choice in json.loads(event)["choices"])


def state(server, *names):
    return server.post("/v1/streams/lookup", {"conversation_ids": list(names)})[1]


def read_on(server, name, wanted):
    """Cut after the first bytes, and read on from there: the bytes of one answer."""
    first = ask(server, name, max_tokens=400)
    begin = first.read(300)
    first.hang_up()
    rest = Reader(server, "GET", address(name, len(begin)))
    check(rest.status == 200 and rest.reply.headers["Content-Type"] == "text/event-stream", f"read on: {rest.status}")
    rest = rest.read()
    check(text_of(begin + rest) == wanted, f"an answer that was read on is another text: {begin + rest}")
    for start in 0, 17, len(begin), len(begin) + len(rest):  # it is over, and read again from anywhere
        status, again = server.get(address(name, start))
        check(status == 200 and again == (begin + rest)[start:], f"from {start}: {status}, {len(again)} bytes")
    [found] = state(server, name, "nobody's")
    check(found["is_done"] and found["total_bytes"] == len(begin + rest) and found["conversation_id"] == name and
          found["completed_at"] >= found["started_at"] > 0, f"its state is {found}")


def stop(server):
    """DELETE ends the text and its readers; what is not there is deleted as well."""
    reader = ask(server, "stopped", max_tokens=100000)
    reader.read(200)
    status, _, _ = server.request("DELETE", address("stopped"))
    check(status == 204 and server.idle(), "a stream that was deleted is still written")
    try:
        cut = b"[DONE]" not in reader.read()
    except Exception:  # IncompleteRead, by http.client's version
        cut = True
    check(cut, "a reader is not cut off where its stream was deleted")
    check(server.get(address("stopped"))[0] == 404 and not state(server, "stopped"), "a deleted stream is there")
    check(server.request("DELETE", address("stopped"))[0] == 204, "deleting twice")


def replace(server, wanted):
    """One conversation has one stream: the next request's."""
    ask(server, "twice", max_tokens=100000).read(100)
    again = ask(server, "twice", max_tokens=400)
    check(text_of(again.read()) == wanted, "the second stream has another text")
    check(server.idle() and text_of(server.get(address("twice"))[1]) == wanted, "the first stream is still there")


def places(server):
    """There are more conversations than places: those that are over make room, the oldest first."""
    for i in range(5):
        ask(server, f"place {i}", max_tokens=3).read()
    kept = [found["conversation_id"] for found in state(server, *(f"place {i}" for i in range(5)))]
    check(kept == ["place 2", "place 3", "place 4"], f"of five streams these are kept: {kept}")


def forgotten(server):
    """The ring has its last bytes."""
    reader = ask(server, "long", max_tokens=100000, timings_per_token=True, logprobs=True, top_logprobs=5)
    whole = reader.read()
    first = json.loads(server.get(address("long", 0))[1])["error"]["message"]
    check(server.get(address("long", 0))[0] == 400 and "is kept from byte" in first, f"forgotten bytes: {first}")
    start = int(first.split()[-2])
    check(start > 0 and server.get(address("long", start))[1] == whole[start:], f"from the first kept byte, {start}")


def refused(server):
    for path, status in (("/v1/stream", 400), ("/v1/stream?conv_id=", 400), (address("nobody's"), 404),
                         (address("place 4", "x"), 400), (address("place 4", -1), 400), (address("place 4", 10 ** 17), 400),
                         (address("place 4", 10 ** 30), 400)):
        got, text = server.get(path)
        check(got == status and json.loads(text)["error"]["message"], f"GET {path}: {got}")
    check(server.request("POST", "/v1/stream", {})[0] == 405, "POST /v1/stream")
    check(state(server) == [] and server.post("/v1/streams/lookup", {})[1] == [] and
          server.post("/v1/streams/lookup", {"conversation_ids": [1, None, ""]})[1] == [], "lookups of nothing")
    # A request that fails has its status, and leaves no stream.
    bad = ask(server, "bad", messages="none")
    check(bad.status == 400 and not state(server, "bad"), f"a bad request: {bad.status}")
    bad = ask(server, "bad", messages=[{"role": "user", "content": "x" * 9000}])
    check(bad.status == 400 and not state(server, "bad"), f"a long prompt: {bad.status}")
    # A name that is too long, or an answer that is no stream: as without one.
    check(text_of(ask(server, "n" * 300, max_tokens=3).read()) and not state(server, "n" * 300), "a long name")
    status, whole = server.post(CHAT, {**QUESTION, "stream": False, "max_tokens": 3}, {"X-Conversation-Id": "whole"})
    check(status == 200 and whole["choices"] and not state(server, "whole"), "an answer that is no stream is kept")


def several(server, wanted):
    """Two read one stream, while a third text is written."""
    ask(server, "shared", max_tokens=400).hang_up()
    readers = [Reader(server, "GET", address("shared", start)) for start in (0, 0)]
    other = server.post(CHAT, {**QUESTION, "stream": False, "max_tokens": 400})[1]
    texts = [text_of(reader.read()) for reader in readers]
    check(texts == [wanted, wanted] and other["choices"][0]["message"]["content"] == wanted, "readers of one stream differ")


def in_the_way(drey, folder, wanted):
    """A text without an end in sight that nobody reads leaves its session to one that waits."""
    server = serve_client.Server(drey, os.path.join(folder, "toy.gguf"), "-q", "--sessions", "1", "-c", "200000")
    server.wait_ready()
    ask(server, "left", max_tokens=190000, ignore_eos=True).hang_up()
    check([found["is_done"] for found in state(server, "left")] == [False], "a text that was left has ended")
    status, answer = server.post(CHAT, {**QUESTION, "stream": False, "max_tokens": 400})
    check(status == 200 and answer["choices"][0]["message"]["content"] == wanted, f"one that waited: {status}")
    check(not state(server, "left"), "a text that nobody reads is written to its end while others wait")
    ask(server, "left", max_tokens=190000, ignore_eos=True).hang_up()
    check(server.stop() == 0, "the end of a server with a text that nobody reads")


def main():
    drey, folder = sys.argv[1:3]
    server = serve_client.Server(drey, os.path.join(folder, "toy.gguf"), "-q", "-d", "lookup", "--sessions", "2", "-c", "1024")
    server.wait_ready()
    wanted = server.post(CHAT, {**QUESTION, "stream": False, "max_tokens": 400})[1]["choices"][0]["message"]["content"]
    read_on(server, "one::org/model:Q8_0", wanted)
    stop(server)
    replace(server, wanted)
    places(server)
    several(server, wanted)
    forgotten(server)
    places(server)
    refused(server)
    check(server.stop() == 0, "the server's end")
    in_the_way(drey, folder, wanted)
    sys.exit(1 if serve_client.failed else 0)


if __name__ == "__main__":
    main()
