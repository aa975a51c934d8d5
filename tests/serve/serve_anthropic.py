#!/usr/bin/env python3
"""Anthropic's /v1/messages on a toy: the answers are those of the same chat at
/v1/chat/completions, in their own form; streams, counts, refusals.
   serve_anthropic.py DREY FOLDER (with toy.gguf)"""
import json, re, sys

from serve_client import Server, check, done

drey, folder = sys.argv[1:3]
N = 12


def chat(s, messages, **more):
    """(text, reason, tokens of the prompt) of the same chat in OpenAI's form"""
    status, answer = s.post("/v1/chat/completions", {"messages": messages, "max_tokens": N, **more})
    check(status == 200, f"the chat: {answer}")
    return answer["choices"][0]["message"]["content"], answer["choices"][0]["finish_reason"], answer["usage"]["prompt_tokens"]


def ask(s, body, **more):
    status, answer = s.post("/v1/messages", {"model": "any", "max_tokens": N, **body, **more})
    check(status == 200, f"/v1/messages: {answer}")
    return answer


def same(s, body, messages, what):
    """The body is the chat of these messages."""
    text, reason, n = chat(s, messages)
    m = ask(s, body)
    check([b["text"] for b in m["content"]] == [text], f"{what}: {m['content']} instead of {text!r}")
    u = m["usage"]
    check(u["input_tokens"] + u["cache_read_input_tokens"] == n and u["output_tokens"] == N, f"{what}: {u}, {n} tokens in the chat")
    check(m["stop_reason"] == ("max_tokens" if reason == "length" else "end_turn"), f"{what}: {m['stop_reason']}")
    status, count = s.post("/v1/messages/count_tokens", body)
    check((status, count) == (200, {"input_tokens": n}), f"{what}: {count} counted, not {n}")
    status, count = s.post("/v1/chat/completions/input_tokens", {"messages": messages})
    check((status, count) == (200, {"input_tokens": n}), f"{what}, as a chat: {count} counted, not {n}")


def forms(s):
    m = ask(s, {"messages": [{"role": "user", "content": "Say hello"}]})
    check(m["type"] == "message" and m["role"] == "assistant" and m["id"].startswith("msg_") and m["stop_sequence"] is None and
          "timings" not in m and "object" not in m, f"the form: {m}")


def requests(s):
    user = {"role": "user", "content": "Hello"}
    same(s, {"messages": [user]}, [user], "a text")
    same(s, {"messages": [user], "system": "Be brief."}, [{"role": "system", "content": "Be brief."}, user], "a system text")
    blocks = [{"type": "text", "text": "x-anthropic-billing-header: 1;"},
              {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "Be kind."}]
    same(s, {"messages": [user], "system": blocks}, [{"role": "system", "content": "Be brief.\nBe kind."}, user], "system blocks")
    same(s, {"messages": [{"role": "user", "content": [{"type": "text", "text": "a \"b\""}, {"type": "text", "text": "ü\n"}]}]},
         [{"role": "user", "content": "a \"b\"\nü\n"}], "parts")
    turns = [user, {"role": "assistant", "content": "Hi"}, {"role": "user", "content": "More"}]
    same(s, {"messages": turns}, turns, "turns")
    calls = [user, {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Look.", "signature": ""}, {"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t1", "name": "see", "input": {"at": "a\"b", "n": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "sun"}]},
                                     {"type": "tool_result", "tool_use_id": "t2", "is_error": True}, {"type": "text", "text": "So?"}]}]
    same(s, {"messages": calls}, [user, {"role": "assistant", "content": "I look.", "reasoning_content": "Look.", "tool_calls": [
        {"id": "t1", "type": "function", "function": {"name": "see", "arguments": "{\"at\":\"a\\\"b\",\"n\":1}"}}]},
        {"role": "tool", "tool_call_id": "t1", "content": "sun"}, {"role": "tool", "tool_call_id": "t2", "content": ""},
        {"role": "user", "content": "So?"}], "calls and results")
    # What is about the account, and what the template does not know, changes nothing.
    same(s, {"messages": [user], "metadata": {"user_id": "u"}, "service_tier": "auto", "thinking": {"type": "enabled", "budget_tokens": 1024},
             "tools": []}, [user], "neutral fields")


def ends(s):
    user = {"messages": [{"role": "user", "content": "Hello"}]}
    text = ask(s, user)["content"][0]["text"]
    word = re.search("[a-z]{3}", text)[0]
    m = ask(s, user, stop_sequences=["never so", word])
    check(m["stop_reason"] == "stop_sequence" and m["stop_sequence"] == word and m["content"][0]["text"] == text[:text.index(word)], f"a stop text: {m}")
    schema = {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"], "additionalProperties": False}
    for field in ({"output_format": {"type": "json_schema", "schema": schema}}, {"output_config": {"format": {"type": "json_schema", "schema": schema}}}):
        m = ask(s, user, max_tokens=60, **field)
        check(m["stop_reason"] == "end_turn" and json.loads(m["content"][0]["text"]) == {"a": 1}, f"a schema: {m}")


def events_of(s, body):
    return s.named_events("/v1/messages", {"max_tokens": N, **body})


def streams(s):
    body = {"messages": [{"role": "user", "content": "Hello"}]}
    m = ask(s, body)
    for more in ({}, {"return_progress": True, "timings_per_token": True, "drey_provisional": True}):
        found = events_of(s, {**body, **more})
        types = [e["type"] for e in found]
        check(types[:2] == ["message_start", "content_block_start"] and types[-3:] == ["content_block_stop", "message_delta", "message_stop"] and
              set(types[2:-3]) == {"content_block_delta"}, f"events: {types}")
        start = found[0]["message"]
        check(start["content"] == [] and start["stop_reason"] is None and start["usage"]["input_tokens"] + start["usage"]["cache_read_input_tokens"] > 0,
              f"message_start: {start}")
        check(found[1]["index"] == 0 and found[1]["content_block"] == {"type": "text", "text": ""}, f"content_block_start: {found[1]}")
        text = "".join(e["delta"]["text"] for e in found[2:-3])
        check(text == m["content"][0]["text"], f"the text of a stream: {text!r}")
        check(found[-2]["delta"] == {"stop_reason": m["stop_reason"], "stop_sequence": None} and found[-2]["usage"]["output_tokens"] == N,
              f"message_delta: {found[-2]}")


TOOL = {"name": "get_weather", "description": "The weather", "input_schema": {"type": "object", "properties": {
    "city": {"type": "string", "maxLength": 20}, "unit": {"enum": ["C", "F"]}}, "required": ["city", "unit"]}}


def tools(s):
    """The model is held to a call, whatever it is; events bring the same input."""
    body = {"max_tokens": 150, "messages": [{"role": "user", "content": "Weather?"}], "tools": [TOOL, {"type": "web_search_20250305", "name": "web_search"}],
            "tool_choice": {"type": "any", "disable_parallel_tool_use": True}}
    for choice in (body["tool_choice"], {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True}):
        m = ask(s, {**body, "tool_choice": choice})
        call = m["content"][0]
        check(m["stop_reason"] == "tool_use" and len(m["content"]) == 1 and call["type"] == "tool_use" and call["name"] == "get_weather" and
              set(call["input"]) == {"city", "unit"}, f"a call: {m}")
    found = events_of(s, body)
    starts = [e for e in found if e["type"] == "content_block_start"]
    check(len(starts) == 1 and starts[0]["content_block"] == {**call, "id": starts[0]["content_block"]["id"], "input": {}}, f"events of a call: {found}")
    text = "".join(e["delta"]["partial_json"] for e in found if e["type"] == "content_block_delta")
    check(json.loads(text) == call["input"] and found[-2]["delta"]["stop_reason"] == "tool_use", f"the input in events: {text}")
    # What is broken off is no call.
    m = ask(s, body, max_tokens=N)
    check(m["stop_reason"] == "max_tokens" and m["content"] == [{"type": "text", "text": ""}], f"a call that is broken off: {m}")
    found = events_of(s, {**body, "max_tokens": N})
    check(found[-2]["delta"]["stop_reason"] == "max_tokens", f"events of such a call: {found[-2]}")


def refusals(s):
    user = {"role": "user", "content": "Hello"}
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    tool = {"type": "tool_use", "id": "t", "input": {}}
    bad = [({}, "messages"), ({"messages": []}, "messages"), ({"messages": 3}, "messages"), ({"messages": [3]}, "message"), ({"messages": [{"role": "user"}]}, "content"),
           ({"messages": [{"role": "x", "content": "a"}]}, "role"), ({"messages": [{"role": "user", "content": [image]}]}, "image input is not supported"),
           ({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [image]}]}]}, "image input"),
           ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "block"), ({"messages": [user, {"role": "assistant", "content": [3]}]}, "block"),
           ({"messages": [user, {"role": "assistant", "content": [tool]}]}, "name"), ({"messages": [user], "system": 3}, "content"),
           ({"messages": [user], "tools": 3}, "tools"), ({"messages": [user], "tools": [{}]}, "tool"), ({"messages": [user], "thinking": {"type": "x"}}, "thinking"),
           ({"messages": [user], "tools": [{"name": "a", "input_schema": {}}], "tool_choice": {"type": "x"}}, "tool_choice"),
           ({"messages": [user], "output_format": {"type": "x"}}, "format"), ({"messages": [user], "mirostat": 2}, "mirostat"),
           ({"messages": [user], "temperature": "warm"}, "temperature")]
    for path in ("/v1/messages", "/v1/messages/count_tokens"):
        for body, word in bad if path == "/v1/messages" else bad[:9]:
            status, answer = s.post(path, body)
            check(status == 400 and answer["type"] == "error" and answer["error"]["type"] == "invalid_request_error" and word in answer["error"]["message"],
                  f"{path} of {body}: {status} {answer}")
    status, answer = s.post("/v1/messages", {"max_tokens": 5, "messages": [{"role": "user", "content": "long " * 2000}]})
    check(status == 400 and answer["error"]["message"].startswith("prompt is too long: "), f"too long: {status} {answer}")
    status, _, text = s.request("GET", "/v1/messages")
    check(status == 405 and json.loads(text)["type"] == "error", f"GET: {text}")
    status, answer = s.post("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": "long " * 2000}]})
    check(status == 200 and answer["input_tokens"] > 2000, f"a long count: {answer}")


def keys():
    s = Server(drey, f"{folder}/toy.gguf", "--api-key", "secret", "-c", "128").wait_ready()
    body = {"max_tokens": 2, "messages": [{"role": "user", "content": "Hello"}]}
    status, answer = s.post("/v1/messages", body)
    check(status == 401 and answer["error"]["type"] == "authentication_error", f"without a key: {status} {answer}")
    check(s.post("/v1/messages", body, {"x-api-key": "secret", "anthropic-version": "2023-06-01"})[0] == 200, "x-api-key")
    check(s.stop() == 0, "the end of the server with a key")


def main():
    s = Server(drey, f"{folder}/toy.gguf", "-c", "1024", "--sessions", "2").wait_ready()
    forms(s)
    requests(s)
    ends(s)
    streams(s)
    tools(s)
    refusals(s)
    check(s.stop() == 0, "the end of the server")
    keys()


main()
done()
