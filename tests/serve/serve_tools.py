#!/usr/bin/env python3
"""Tools and reasoning of chats: calls and their arguments, whole and in events, what is refused,
and messages with calls in every template.  serve_tools.py DREY MODEL
Any model that has a chat template; its answers are held to the tools' schemas, whatever it is."""
import json, sys, tempfile
from serve_client import Server, check, done

drey, model = sys.argv[1:3]
chat = "/v1/chat/completions"
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "The weather in a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "description": "Its name", "maxLength": 20}, "unit": {"enum": ["C", "F"]}},
    "required": ["city", "unit"]}}}
TIME = {"type": "function", "function": {"name": "get_time"}}
asked = [{"role": "user", "content": "What is the weather in Paris?"}]
called = [*asked, {"role": "assistant", "content": None, "tool_calls": [{"id": "a1b2c3d4e", "type": "function", "function": {
    "name": "get_weather", "arguments": '{"city": "Paris", "unit": "C"}'}}]},
    {"role": "tool", "tool_call_id": "a1b2c3d4e", "content": "18 degrees"}, {"role": "tool", "tool_call_id": "a1b2c3d4e", "content": "Rain"}]


def ask(s, **fields):
    status, answer = s.post(chat, {"messages": asked, "temperature": 0, "max_tokens": 400, **fields})
    check(status == 200, f"{fields}: {answer}")
    return answer["choices"][0] if status == 200 else {"message": {}, "finish_reason": None}


def good_call(call, names=("get_weather",)):
    arguments = json.loads(call["function"]["arguments"])
    if call["function"]["name"] == "get_weather":
        check(set(arguments) == {"city", "unit"} and arguments["unit"] in "CF" and len(arguments["city"]) <= 20, f"arguments: {arguments}")
    check(call["type"] == "function" and len(call["id"]) == 9 and call["function"]["name"] in names, f"{call}")


def required(s):
    for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
        got = ask(s, tools=[WEATHER, TIME] if choice != "required" else [WEATHER], tool_choice=choice, parallel_tool_calls=False)
        calls = got["message"].get("tool_calls", [])
        check(len(calls) == 1 and got["message"]["content"] is None and got["finish_reason"] == "tool_calls", f"{choice}: {got}")
        for call in calls:
            good_call(call)
    got = ask(s, tools=[WEATHER, TIME], tool_choice="required", temperature=1.5, seed=7)
    for call in got["message"].get("tool_calls", []):
        if got["finish_reason"] == "tool_calls":
            good_call(call, ("get_weather", "get_time"))


def events(s):
    """The same as the whole answer, in pieces."""
    fields = {"tools": [WEATHER], "tool_choice": "required", "parallel_tool_calls": False}
    whole = ask(s, **fields)["message"]["tool_calls"][0]["function"]
    name, arguments, ends, ids = "", "", [], []
    for event in s.stream(chat, {"messages": asked, "temperature": 0, "max_tokens": 400, **fields})[1][:-1]:
        for choice in event["choices"]:
            ends.append(choice["finish_reason"])
            for call in choice["delta"].get("tool_calls", []):
                check(call["index"] == 0, f"index: {call}")
                ids += [call["id"]] if "id" in call else []
                name += call["function"].get("name", "")
                arguments += call["function"]["arguments"]
            check(not choice["delta"].get("content"), f"content next to a call: {choice}")
    check({"name": name, "arguments": arguments} == whole and ends[-1] == "tool_calls" and len(ids) == 1, f"{name} {arguments} {ends}; whole: {whole}")


def broken_off(s):
    got = ask(s, tools=[WEATHER], tool_choice="required", max_tokens=14)
    check(got["finish_reason"] == "length", f"broken off: {got}")
    got = ask(s, tools=[WEATHER], tool_choice="none", max_tokens=5)
    check("tool_calls" not in got["message"], f"none: {got}")
    schema = {"type": "json_schema", "json_schema": {"schema": {"enum": [True, False]}}}
    got = ask(s, tools=[TIME], response_format=schema)
    check(got["message"].get("tool_calls") or got["message"]["content"] in ("true", "false"), f"a schema or a call: {got}")


def odd_schemas(s):
    """Schemas that grammars do not hold leave any object; other tools are held as before."""
    odd = {"type": "function", "function": {"name": "odd", "parameters": {"type": "object", "not": {"required": ["x"]}}}}
    got = ask(s, tools=[odd, WEATHER], tool_choice={"type": "function", "function": {"name": "odd"}}, max_tokens=40)
    check(got["message"].get("tool_calls", [{}])[0].get("function", {}).get("name") == "odd", f"odd: {got}")
    # What is not held has its place in the answer's head; a strict tool is refused with it.
    unique = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "maxItems": 2}
    tool = {"name": "ids", "parameters": {"type": "object", "properties": {"ids": unique}, "required": ["ids"]}}
    body = {"messages": asked, "temperature": 0, "max_tokens": 100, "tools": [{"type": "function", "function": tool}], "tool_choice": "required"}
    place = "/tools/ids/parameters/properties/ids/uniqueItems"
    for more in ({}, {"stream": True}):
        status, headers, _ = s.request("POST", chat, {**body, **more})
        check(status == 200 and headers["X-Drey-Not-Held"] == place, f"{status} {headers}")
    status, answer = s.post(chat, {**body, "tools": [{"type": "function", "function": {**tool, "strict": True}}]})
    check(status == 400 and "/properties/ids/uniqueItems" in answer["error"]["message"], f"{answer}")
    status, headers, _ = s.request("POST", chat, {**body, "tools": [WEATHER]})
    check(status == 200 and "X-Drey-Not-Held" not in headers, f"{status} {headers}")
    # The same of a format, in each interface.
    schema = {"type": "object", "properties": {"ids": unique}, "required": ["ids"]}
    hello = {"messages": asked, "max_tokens": 60}
    for path, fields, strict in (
            (chat, {**hello, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}, ("response_format", "json_schema")),
            (chat, {**hello, "json_schema": schema}, None), ("/completion", {"prompt": "a", "n_predict": 40, "json_schema": schema}, None),
            ("/v1/responses", {"input": "Hello", "max_output_tokens": 60, "text": {"format": {"type": "json_schema", "name": "x", "schema": schema}}}, ("text", "format")),
            ("/v1/messages", {**hello, "output_format": {"type": "json_schema", "schema": schema}}, ("output_format",)), ("/api/chat", {**hello, "stream": False, "format": schema}, None)):
        status, headers, text = s.request("POST", path, fields)
        check(status == 200 and headers["X-Drey-Not-Held"] == "/properties/ids/uniqueItems", f"{path}: {status} {headers} {text}")
        if strict:
            at = fields
            for name in strict:
                at = at[name]
            at["strict"] = True
            status, _, text = s.request("POST", path, fields)
            check(status == 400 and b"/properties/ids/uniqueItems" in text, f"{path}, strict: {status} {text}")
    many = [{"type": "function", "function": {"name": f"tool_{i}", "parameters": WEATHER["function"]["parameters"]}} for i in range(20)]
    got = ask(s, tools=many, tool_choice="required", parallel_tool_calls=False)
    check(len(got["message"].get("tool_calls", [])) == 1, f"many tools: {got}")


def history(s):
    status, answer = s.post("/apply-template", {"messages": called, "tools": [WEATHER]})
    check(status == 200 and "18 degrees" in answer["prompt"] and "get_weather" in answer["prompt"] and '"city": "Paris"' in answer["prompt"].replace('\\"', '"'),
          f"history: {answer}")
    check("tool_calls" not in answer["prompt"] or status != 200, f"calls in words: {answer}")
    ask(s, messages=called, tools=[WEATHER], max_tokens=5)


def refused(s):
    for fields, word in (({"tools": {}}, "tools"), ({"tools": [1]}, "tools"), ({"tools": [{"type": "web_search"}]}, "tools"), ({"tool_choice": "required"}, "tool_choice"),
                         ({"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "x"}}}, '"x"'), ({"tools": [WEATHER], "tool_choice": 5}, "tool_choice"),
                         ({"tools": [WEATHER], "grammar": 'root ::= "a"'}, "grammar"), ({"tools": [WEATHER], "ignore_eos": True}, "ignore_eos"),
                         ({"functions": [WEATHER]}, "functions"), ({"reasoning_format": "x"}, "reasoning_format"), ({"parallel_tool_calls": 1}, "parallel_tool_calls"),
                         ({"enable_thinking": 1}, "enable_thinking"),
                         ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "name"),
                         ({"messages": [*asked, {"role": "assistant", "content": "It"}], "tools": [WEATHER], "tool_choice": "required"}, "beginning of the answer")):
        status, answer = s.post(chat, {"messages": asked, "max_tokens": 1, **fields})
        check(status == 400 and word in answer["error"]["message"], f"{fields}: {status} {answer}")


def reasoning(s):
    """A template that opens the reasoning, unless that is not wanted."""
    hello = {"messages": asked, "temperature": 0, "max_tokens": 6}
    for fields, thinks, text in (({}, True, False), ({"reasoning_format": "none"}, False, True), ({"enable_thinking": False}, False, True),
                                 ({"chat_template_kwargs": {"enable_thinking": False}, "enable_thinking": True}, False, True)):
        message = ask(s, **hello, **fields)["message"]
        check(bool(message.get("reasoning_content")) == thinks and bool(message["content"]) == text, f"{fields}: {message}")
    deltas = [e["choices"][0]["delta"] for e in s.stream(chat, hello)[1][:-1] if e["choices"]]
    check(any("reasoning_content" in d for d in deltas) and not any(d.get("content") for d in deltas), f"events: {deltas}")
    status, answer = s.post("/apply-template", {"messages": asked})
    check("2" in answer["prompt"].split("date ")[1][:12], f"the date: {answer}")


def in_words(s):
    """A template that knows no tools: a system message has them, and earlier calls are text."""
    prompt = s.post("/apply-template", {"messages": [{"role": "system", "content": "Be kind."}, *called], "tools": [WEATHER]})[1]["prompt"]
    for words in ("Be kind.", "You may call tools", "<tool_call>", '"arguments": {"city": "Paris", "unit": "C"}', "<tool_response>\n18 degrees\n</tool_response>\n<tool_response>"):
        check(words in prompt, f"not in the prompt: {words}: {prompt}")
    check("<tool_response>\n18 degrees" in s.post("/apply-template", {"messages": called})[1]["prompt"], "results without tools")
    check(prompt.count("<|im_start|>user") == 2 and prompt.count("<|im_start|>system") == 1, f"turns: {prompt}")
    required(s)


s = Server(drey, model, "-c", "8192", "--sessions", "2").wait_ready()
for part in (required, events, broken_off, odd_schemas, history, refused):
    part(s)
check(s.stop() == 0, "it did not end")
with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
    file.write("date {{ datetime }}{% for m in messages %}{{ m.content }}{% endfor %}{% if tools %}<tool_call><think>{% elif enable_thinking %}<think>{% else %}<think></think>{% endif %}\n")
    file.flush()
    s = Server(drey, model, "-c", "512", "--chat-template", file.name).wait_ready()
    reasoning(s)
    s.stop()
    s = Server(drey, model, "-c", "512", "--chat-template", file.name, "--no-reasoning").wait_ready()
    check("reasoning_content" not in ask(s, max_tokens=5)["message"], "--no-reasoning")
    # Nor does a template that opens reasoning all the same let a model think that has to call.
    calls = ask(s, tools=[WEATHER], tool_choice="required", max_tokens=120)["message"]
    check("reasoning_content" not in calls and calls.get("tool_calls"), f"--no-reasoning: {calls}")
    s.stop()
s = Server(drey, model, "-c", "8192", "--chat-template", "chatml").wait_ready()
in_words(s)
s.stop()
with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
    file.write("tools <tool_call> tool_calls 'tool' {% for m in messages %}[{{ m.content }}|{{ m.thinking }}|{{ m.reasoning_content }}]{% endfor %}\n")
    file.flush()
    s = Server(drey, model, "-c", "512", "--chat-template", file.name).wait_ready()
    thought = [*asked, {**called[1], "reasoning_content": "Ask."}]
    for message, wanted in ((thought[1], "[|Ask.|Ask.]"), ({**thought[1], "content": "So."}, "[So.||Ask.]"), ({"role": "user", "content": "x", "reasoning_content": "y"}, "[x||y]")):
        prompt = s.post("/apply-template", {"messages": [message], "tools": [WEATHER]})[1]["prompt"]
        check(wanted in prompt, f"thought: {prompt}")
    s.stop()
done()
