#!/usr/bin/env python3
"""OpenAI's /v1/responses on a toy: the answers are those of the same chat at
/v1/chat/completions, in their own form; events, responses that are continued, refusals.
   serve_responses.py DREY FOLDER (with toy.gguf)"""
import json, sys

from serve_client import Server, check, done

drey, folder = sys.argv[1:3]
N = 12
hello = {"role": "user", "content": "Hello"}
FUNCTION = {"name": "see", "description": "Look", "parameters": {"type": "object", "properties": {"unit": {"enum": ["C", "F"]}}, "required": ["unit"]}}
TOOLS = {"tools": [{"type": "function", **FUNCTION}, {"type": "web_search"}, {"type": "local_shell"}], "tool_choice": "required", "parallel_tool_calls": False}


def chat(s, messages, **more):
    status, answer = s.post("/v1/chat/completions", {"messages": messages, "max_tokens": N, **more})
    check(status == 200, f"the chat: {answer}")
    return answer["choices"][0]["message"]["content"], answer["usage"]["prompt_tokens"]


def ask(s, body, **more):
    status, answer = s.post("/v1/responses", {"model": "any", "max_output_tokens": N, **body, **more})
    check(status == 200, f"/v1/responses: {answer}")
    return answer


def text_of(r):
    return "".join(part["text"] for item in r["output"] if item["type"] == "message" for part in item["content"])


def same(s, body, messages, what):
    text, n = chat(s, messages)
    r = ask(s, body)
    check(text_of(r) == text and r["usage"]["input_tokens"] == n, f"{what}: {r} instead of {text!r}, {n}")
    status, count = s.post("/v1/responses/input_tokens", body)
    check((status, count) == (200, {"object": "response.input_tokens", "input_tokens": n}), f"{what}: {count} counted, not {n}")
    return r


def requests(s):
    r = same(s, {"input": "Hello"}, [hello], "a text")
    check(r["object"] == "response" and r["id"].startswith("resp_") and r["status"] == "incomplete" and
          r["incomplete_details"] == {"reason": "max_output_tokens"} and r["output"][0]["id"].startswith("msg_") and r["output"][0]["role"] == "assistant", f"the form: {r}")
    system = {"role": "system", "content": "Be brief."}
    same(s, {"input": "Hello", "instructions": "Be brief."}, [system, hello], "instructions")
    same(s, {"input": [{"role": "developer", "content": "Be kind."}, hello], "instructions": "Be brief."},
         [{"role": "system", "content": "Be brief.\nBe kind."}, hello], "instructions and a developer's text")
    parts = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a \"b\""}, {"type": "input_text", "text": "c"}]}]
    same(s, {"input": parts, "include": ["reasoning.encrypted_content"], "prompt_cache_key": "k", "store": False, "metadata": {}, "truncation": "disabled",
             "text": {"verbosity": "medium"}, "reasoning": {"summary": "auto"}}, [{"role": "user", "content": "a \"b\"\nc"}], "parts and neutral fields")
    items = [hello, {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Look."}]},
             {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look.", "annotations": []}]},
             {"type": "function_call", "call_id": "a", "name": "see", "arguments": "{\"at\":\"x\"}"}, {"type": "function_call", "call_id": "b", "name": "see"},
             {"type": "function_call_output", "call_id": "a", "output": "sun"},
             {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "rain"}]}, {"role": "user", "content": "So?"}]
    call = {"type": "function", "function": {"name": "see"}}
    same(s, {"input": items}, [hello, {"role": "assistant", "reasoning_content": "Look.", "content": "I look.", "tool_calls": [
        {**call, "id": "a", "function": {"name": "see", "arguments": "{\"at\":\"x\"}"}}, {**call, "id": "b", "function": {"name": "see", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "sun"}, {"role": "tool", "tool_call_id": "b", "content": "rain"}, {"role": "user", "content": "So?"}], "items")
    schema = {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"], "additionalProperties": False}
    r = ask(s, {"input": "Hello", "text": {"format": {"type": "json_schema", "name": "x", "schema": schema, "strict": True}}}, max_output_tokens=90)
    check(json.loads(text_of(r)) == {"a": 1} and r["status"] == "completed" and r["incomplete_details"] is None, f"a schema: {r}")


def events_of(s, body):
    found = s.named_events("/v1/responses", {"max_output_tokens": N, **body})
    check([e["sequence_number"] for e in found] == list(range(len(found))), f"the events' numbers: {found}")
    return found


def of(events, kind):
    return [e for e in events if e["type"] == "response." + kind]


def streams(s):
    for more in ({}, {"timings_per_token": True, "return_progress": True}):
        whole = ask(s, {"input": "Hello"})
        found = events_of(s, {"input": "Hello", **more})
        types = [e["type"][9:] for e in found if "prompt_progress" not in e]
        check(types[:4] == ["created", "in_progress", "output_item.added", "content_part.added"] and set(types[4:-4]) == {"output_text.delta"} and
              types[-4:] == ["output_text.done", "content_part.done", "output_item.done", "completed"], f"events: {types}")
        text, last = "".join(e["delta"] for e in of(found, "output_text.delta")), found[-1]["response"]
        item = last["output"][0]
        check(text == text_of(whole) == of(found, "output_text.done")[0]["text"] == of(found, "content_part.done")[0]["part"]["text"] == text_of(last), f"texts: {found}")
        check(of(found, "output_item.done")[0]["item"] == item and all(e["item_id"] == item["id"] for e in found if "item_id" in e) and
              of(found, "output_item.added")[0]["item"]["id"] == item["id"] and last["id"] == found[0]["response"]["id"], f"ids: {found}")
        check(last["usage"]["output_tokens"] == N and last["status"] == "incomplete", f"the end: {last}")
        check(bool(more) == any("timings" in e for e in of(found, "output_text.delta")), "timings of each token")


def tools(s):
    r = ask(s, {"input": "Hello", **TOOLS}, max_output_tokens=150)
    call = r["output"][0]
    check(len(r["output"]) == 1 and call["type"] == "function_call" and call["name"] == "see" and json.loads(call["arguments"])["unit"] in ("C", "F") and
          call["id"].startswith("fc_") and len(call["call_id"]) == 9, f"a call: {r}")
    found = events_of(s, {"input": "Hello", **TOOLS, "max_output_tokens": 150})
    item = found[-1]["response"]["output"][0]
    arguments = "".join(e["delta"] for e in of(found, "function_call_arguments.delta"))
    check(arguments == call["arguments"] == item["arguments"] == of(found, "function_call_arguments.done")[0]["arguments"] and
          of(found, "output_item.done")[0]["item"] == item and of(found, "output_item.added")[0]["item"] == {**item, "arguments": "", "status": "in_progress"} and
          not of(found, "content_part.done"), f"events of a call: {found}")
    named = ask(s, {"input": "Hello", **TOOLS, "tool_choice": {"type": "function", "name": "see"}}, max_output_tokens=150)
    check(named["output"][0]["name"] == "see", f"a call by its name: {named}")
    repeats = lambda answer, choice: answer["tools"] == TOOLS["tools"] and answer["tool_choice"] == choice
    check(repeats(named, {"type": "function", "name": "see"}) and all(repeats(found[i]["response"], "required") for i in (0, 1, -1)), f"tools as asked: {named}")
    # It is continued with its output, as the same chat would be.
    more = [{"type": "function_call_output", "call_id": item["call_id"], "output": "sun"}]
    r = ask(s, {"previous_response_id": found[-1]["response"]["id"], "input": more})
    text, n = chat(s, [hello, {"role": "assistant", "content": "", "tool_calls": [{"id": item["call_id"], "type": "function", "function": {
        "name": "see", "arguments": item["arguments"]}}]}, {"role": "tool", "tool_call_id": item["call_id"], "content": "sun"}])
    check(text_of(r) == text and r["usage"]["input_tokens"] == n, f"after a call: {r}, not {text!r}")


def state(s):
    messages, last = [{"role": "system", "content": "Be kind."}], None
    for i, word in enumerate(("One", "Two", "Three")):
        body = {"input": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": word}]} if i == 0 else {"input": word, "previous_response_id": last}
        if i == 0: # instructions are not carried over
            ask(s, {**body, "instructions": "Be brief."})
        messages.append({"role": "user", "content": word})
        if i == 1:
            found = events_of(s, body)
            r = found[-1]["response"]
            text, n = chat(s, messages)
            check(text_of(r) == text and r["usage"]["input_tokens"] == n, f"continued in a stream: {r}, not {text!r}")
        else:
            r = same(s, body, messages, f"message {i}")
        messages.append({"role": "assistant", "content": text_of(r)})
        last = r["id"]
        status, kept = s.get(f"/v1/responses/{last}")
        check(status == 200 and json.loads(kept) == {k: v for k, v in r.items()}, f"what is kept: {kept} instead of {r}")
    for rule in ("Be brief.", "Be good.", "Be fast.", "Be old.", "Be new."): # a message must not hold a NUL, which toys write
        first = ask(s, {"input": "Hello", "instructions": rule})
        if "\0" not in text_of(first):
            break
    r = ask(s, {"input": "Two", "previous_response_id": first["id"]})
    text, n = chat(s, [hello, {"role": "assistant", "content": text_of(first)}, {"role": "user", "content": "Two"}])
    check(text_of(r) == text and r["usage"]["input_tokens"] == n, f"without the first's instructions: {r}")
    status, _, text = s.request("DELETE", f"/v1/responses/{last}")
    check(status == 200 and json.loads(text) == {"id": last, "object": "response", "deleted": True}, f"DELETE: {text}")
    check(s.get(f"/v1/responses/{last}")[0] == 404 and s.request("DELETE", f"/v1/responses/{last}")[0] == 404, "a deleted response")
    status, answer = s.post("/v1/responses", {"input": "a", "previous_response_id": last})
    check(status == 404 and "previous_response_id" in answer["error"]["message"], f"continued from a deleted one: {answer}")
    r = ask(s, {"input": "a", "store": False})
    check(s.get(f"/v1/responses/{r['id']}")[0] == 404, "not stored")
    # The oldest are forgotten: 300 are more than there are places for.
    kept = ask(s, {"input": "a", "max_output_tokens": 1})["id"]
    for _ in range(300):
        r = ask(s, {"input": "a", "max_output_tokens": 1})
    check(s.get(f"/v1/responses/{kept}")[0] == 404 and s.get(f"/v1/responses/{r['id']}")[0] == 200, "the oldest and the newest")


def refusals(s):
    for body, word in (({}, "input"), ({"input": 3}, "input"), ({"input": [3]}, "role"), ({"input": [{"role": "x", "content": "a"}]}, "role"),
                       ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "image input"),
                       ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "input_text"), ({"input": [{"type": "item_reference", "id": "a"}]}, "type"),
                       ({"input": [{"type": "function_call"}]}, "function_call"), ({"input": "a", "tools": 3}, "tools"), ({"input": "a", "tools": [{"type": "function"}]}, "name"),
                       ({"input": "a", "text": {"format": {"type": "x"}}}, "text.format"), ({"input": "a", "background": True}, "background"),
                       ({"input": "a", "conversation": "x"}, "conversation"), ({"input": "a", "instructions": 3}, "instructions"), ({"input": "long " * 2000}, "context"),
                       ({"input": "a", "mirostat": 2}, "mirostat"), ({"input": "a", "text": {"verbosity": "low"}}, "verbosity")):
        status, answer = s.post("/v1/responses", body)
        check(status == 400 and word in answer["error"]["message"], f"{str(body)[:80]}: {status} {answer}")


def main():
    s = Server(drey, f"{folder}/toy.gguf", "-c", "1024", "--sessions", "2").wait_ready()
    requests(s)
    streams(s)
    tools(s)
    state(s)
    refusals(s)
    check(s.stop() == 0, "the end of the server")


main()
done()
