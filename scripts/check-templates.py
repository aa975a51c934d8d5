#!/usr/bin/env python3
"""Compares drey's chat templates with Python's jinja2, over a folder of templates and seeded
conversations.

    pip install jinja2==3.1.6
    scripts/check-templates.py RENDER_CHAT FOLDER... [--cases N] [--seed S] [--show]
                               [--write | --against]

RENDER_CHAT is the test program of that name (BUILD/tests/render_chat). FOLDER holds *.jinja;
llama.cpp's models/templates is one. Jinja runs as Hugging Face's apply_chat_template sets it up: a
sandbox with trim_blocks, lstrip_blocks, loop controls, {% generation %}, tojson, raise_exception
and strftime_now; and with from_json, which some templates take for granted. Where a template
refuses a system message, its text goes in front of the first user's, in both; and what templates
leave out (src/template/left_out.c) is added in both.

Cases are the single turns below, without a clock, and N seeded conversations. A case agrees where
both write the same text, or both refuse. What a conversation wrote has to be marked as such: each
message that is unique in the text is looked for; of a single turn nothing else may be marked.
--show: the first case of each template that does not agree. Exit status 1 where any does not.
--write keeps the cases and jinja2's answers in FOLDER/answers.jsonl, and --against compares with
those, so that jinja2 is not needed (tests/data/templates, and tests/data/chat with --cases 0).
"""
import argparse
import datetime
import json
import os
import random
import subprocess
import sys

NOW = 1753000000
WORDS = ["Hello", "world", "what's", "the <b>weather</b>", "in \"Paris\"", "\u4f60\u597d", "\U0001f600", "caf\u00e9", "a\\nb",
         "{{ x }}", "{% if %}", "<|im_start|>system", "<|im_end|>", "</s>", "[INST]", "line\nbreak", "tab\there", "&amp;",
         "<think>", "</think>", "1", "  ", "\u00a0", "<tool_call>", "```code```", "'quoted'", "end."]


SPACES = "".join(chr(c) for c in range(0x110000) if chr(c).isspace())
TURNS = [  # what a system message says, and the user
    (None, "Write a function that adds two numbers."),
    ("You are a pirate.", "Hello!"),
    (None, ""),
    ("", "Is the system text empty?"),
    (None, "  blanks around \n\n"),
    ("Two\nlines.\n", "Two\nmore\tlines.\n"),
    (None, "\u00a0\u2003 wide blanks, \u4f60\u597d \U0001f600 \u3000\u0085"),
    ("A pirate.", "  blanks \n and a system text  "),
    (None, SPACES + "x\u200b\u180e y" + SPACES),
    (None, "\u200b zero width \u180e"),
    ("It's a \\n \"quote\".", "{{ user }} {% raw %} 'quotes' \\n"),
    (None, "<|im_end|> [/INST] <|eot_id|> </s> <end_of_turn>"),
]


class Refused(Exception):
    pass


# ---- Conversations ----

def single_turn(system, user):
    messages = [{"role": "system", "content": system}] if system is not None else []
    return {"messages": [*messages, {"role": "user", "content": user}], "tools": None, "variables": {}, "now": 0}


def text(r):
    words = [r.choice(WORDS) for _ in range(r.randint(0, 7))]
    return r.choice(["", " ", "\n"]) * r.randint(0, 1) + " ".join(words) + r.choice(["", " ", "\n\n"]) * r.randint(0, 1)


def number(r):
    return r.choice([0, 1, -7, 3.5, 1e20, 0.1, -0.0, 1e-7, 12345678901, 123456789012345678901234567890, 2.0])


def plain_value(r, depth=0):
    kinds = [lambda: text(r), lambda: number(r), lambda: r.random() < 0.5, lambda: None]
    if depth < 2:
        kinds += [lambda: [plain_value(r, depth + 1) for _ in range(r.randint(0, 3))],
                  lambda: {r.choice(["a", "b", "key c", "items", "name"]): plain_value(r, depth + 1)
                           for _ in range(r.randint(0, 3))}]
    return r.choice(kinds)()


def schema(r, depth=0):
    kind = r.choice(["string", "number", "integer", "boolean"] + (["array", "object"] if depth < 2 else []))
    s = {"type": kind}
    if r.random() < 0.7:
        s["description"] = text(r)
    if kind == "string" and r.random() < 0.4:
        s["enum"] = ["one", "two", text(r)]
    if kind == "array":
        s["items"] = schema(r, depth + 1)
    if kind == "object":
        s["properties"] = {n: schema(r, depth + 1) for n in r.sample(["x", "y", "Zed", "city"], r.randint(1, 3))}
        if r.random() < 0.6:
            s["required"] = list(s["properties"])[:1]
    if r.random() < 0.15:
        s["default"] = plain_value(r, 2)
    return s


def tool(r, i):
    properties = {n: schema(r) for n in r.sample(["location", "unit", "days", "Filter"], r.randint(0, 3))}
    parameters = {"type": "object", "properties": properties}
    if r.random() < 0.7:
        parameters["required"] = list(properties)[:1]
    function = {"name": f"tool_{i}", "description": text(r), "parameters": parameters}
    if r.random() < 0.15:
        function["strict"] = True
    return {"type": "function", "function": function}


def content(r, parts):
    if parts and r.random() < 0.25:
        return [{"type": "text", "text": text(r)} for _ in range(r.randint(1, 2))]
    return text(r)


def assistant(r, tools, calls, parts, number_of_call):
    message = {"role": "assistant", "content": content(r, parts)}
    if r.random() < 0.2:
        message["content"] = "<think>\n" + text(r) + "\n</think>\n\n" + text(r)
    if r.random() < 0.2:
        message["reasoning_content"] = text(r)
    if calls:
        arguments = {n: plain_value(r) for n in r.sample(["location", "unit", "days"], r.randint(0, 3))}
        call = {"type": "function", "function": {"name": r.choice(tools)["function"]["name"] if tools else "f",
                                                 "arguments": arguments}}
        if r.random() < 0.3:
            call["function"]["arguments"] = json.dumps(arguments)
        if r.random() < 0.8:
            call["id"] = "call%05d" % number_of_call
        message["tool_calls"] = [call] * (2 if r.random() < 0.2 else 1)
        if r.random() < 0.5:
            message["content"] = r.choice([None, ""])
    return message


def conversation(r):
    tools = [tool(r, i) for i in range(r.randint(1, 3))] if r.random() < 0.5 else None
    parts = r.random() < 0.3
    messages = []
    if r.random() < 0.5:
        messages.append({"role": r.choice(["system", "system", "system", "developer"]), "content": content(r, parts)})
    for turn in range(r.randint(1, 3)):
        messages.append({"role": "user", "content": content(r, parts)})
        if turn and r.random() < 0.3:
            messages[-1]["name"] = "Ann"
        if tools and r.random() < 0.5:
            call = assistant(r, tools, True, parts, turn)
            messages.append(call)
            for c in call["tool_calls"]:
                answer = {"role": "tool", "name": c["function"]["name"], "content": text(r)}
                if "id" in c:
                    answer["tool_call_id"] = c["id"]
                if r.random() < 0.2:
                    answer["content"] = json.dumps(plain_value(r))
                messages.append(answer)
        messages.append(assistant(r, tools, False, parts, turn))
    if r.random() < 0.7:
        messages.pop()
    variables = {"add_generation_prompt": r.random() < 0.8}
    for name, values in (("enable_thinking", [True, False]), ("thinking", [True, False]), ("date_string", ["01 Jan 2025"]),
                         ("reasoning_effort", ["low", "high"]), ("keep_past_thinking", [True])):
        if r.random() < 0.2:
            variables[name] = r.choice(values)
    return {"messages": messages, "tools": tools, "variables": variables}


# ---- Jinja ----

def make_environments(clock):
    import jinja2.ext
    from jinja2 import nodes
    from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment

    class Generation(jinja2.ext.Extension):
        tags = {"generation"}

        def parse(self, parser):
            line = next(parser.stream).lineno
            body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
            return nodes.CallBlock(self.call_method("_shown"), [], [], body).set_lineno(line)

        def _shown(self, caller):
            return caller()

    def raise_exception(message):
        raise Refused(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def strftime_now(form):
        return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).strftime(form)

    made = []
    for kind in (ImmutableSandboxedEnvironment, SandboxedEnvironment):
        e = kind(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
        e.filters["tojson"] = tojson
        e.filters["from_json"] = json.loads
        e.globals.update(raise_exception=raise_exception, **({"strftime_now": strftime_now} if clock else {}))
        made.append(e)
    return made


def render(template, case, messages):
    values = {"messages": messages, "tools": case["tools"], "documents": None, "add_generation_prompt": True,
              "bos_token": "<s>", "eos_token": "</s>"}
    if case["tools"]:
        values["xml_tools"] = case["tools"]
    values.update(case["variables"])
    return template.render(**json.loads(json.dumps(values)))


def folded(messages):
    if len(messages) < 2 or [m["role"] for m in messages[:2]] != ["system", "user"]:
        return None
    contents = [m["content"] for m in messages[:2]]
    if not all(isinstance(c, str) for c in contents):
        return None
    return [{"role": "user", "content": "\n\n".join(contents)}] + messages[2:]


def as_call(source, call):
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    if "xml_tools" in source:
        text = "\n<tool_call>\n{\"name\": %s, \"arguments\": %s}\n</tool_call>"
        return text % tuple(json.dumps(x, ensure_ascii=False) for x in (name, arguments))
    items = arguments.items() if isinstance(arguments, dict) else ()
    return "%s(%s)" % (name, ", ".join(k + "=" + json.dumps(v, ensure_ascii=False) for k, v in items))


def with_calls(source, messages):
    """Calls in contents, for templates that write none."""
    python = "<|tool_list_start|>" in source or "List of tools: [" in source
    if "tool_calls" in source or not (python or "xml_tools" in source):
        return messages
    out = []
    for message in messages:
        if message.get("tool_calls"):
            content = message.get("content")
            calls = [as_call(source, call) for call in message["tool_calls"]]
            text = "<|tool_call_start|>[%s]<|tool_call_end|>" % ", ".join(calls) if python else "".join(calls)
            message = {**message, "content": (content if isinstance(content, str) else "") + text}
        out.append(message)
    return out


def with_turn(source, case, text):
    """Gemma 4's turn after an answer with calls and a text."""
    adds = case["variables"].get("add_generation_prompt", True) and "<|tool_call>call:" in source
    return text + "<|turn>model\n" if adds and text.endswith("<turn|>\n") else text


def jinja_answer(environments, source, case):
    """The text, or None where Jinja refuses. What HF's sandbox forbids, changing lists, is asked of
    the other one."""
    from jinja2.exceptions import SecurityError
    for environment in environments:
        try:
            template = environment.from_string(source)
            messages = with_calls(source, case["messages"])
            try:
                return with_turn(source, case, render(template, case, messages))
            except Refused:
                other = folded(messages)
                return with_turn(source, case, render(template, case, other)) if other else None
        except SecurityError:
            continue
        except Exception as error:
            return None
    return None


# ---- drey ----

def drey_answers(program, path, cases):
    lines = []
    for case in cases:
        lines.append(json.dumps(case["messages"], ensure_ascii=False))
        lines.append(json.dumps(case["tools"], ensure_ascii=False) if case["tools"] else "-")
        lines.append(json.dumps(case["variables"], ensure_ascii=False))
        lines.append(str(case.get("now", NOW)))
    run = subprocess.run([program, path], input=("\n".join(lines) + "\n").encode(), capture_output=True, check=True)
    out, answers = run.stdout, []
    while out:
        head, _, out = out.partition(b"\n")
        if head.startswith(b"error"):
            answers.append((None, head.decode(), []))
            continue
        _, n, n_ranges = head.split()
        body, out = out[:int(n)], out[int(n) + 1:]
        ranges = []
        for _ in range(int(n_ranges)):
            line, _, out = out.partition(b"\n")
            ranges.append(tuple(int(x) for x in line.split()))
        answers.append((body.decode(), "", ranges))
    return answers


def marks_fail(case, said, ranges):
    """A message's text that is once in the answer has to be in what is marked; of a single turn
    all that is marked has to be its texts or roles, but for blanks. None, or the text."""
    whole = said.encode()
    allowed = "|".join(["\n\n".join(str(m["content"]) for m in case["messages"]), "system", "user"]).encode()
    for begin, end in ranges if "now" in case else []:
        if begin >= end or whole[begin:end] not in allowed:
            return whole[begin:end].decode(errors="replace")
    if "now" in case and not ranges and case["messages"][-1]["content"]:
        return "no text at all"
    for message in case["messages"]:
        parts = message.get("content")
        for part in [parts] if isinstance(parts, str) else [p["text"] for p in parts or []]:
            part = part.strip().encode()
            at = whole.find(part)
            if b"think" in part:  # which templates take apart and write themselves
                continue
            if len(part) < 12 or at < 0 or whole.find(part, at + 1) >= 0:
                continue
            inside = sum(min(end, at + len(part)) - max(begin, at) for begin, end in ranges
                         if begin < at + len(part) and end > at)
            if inside < len(part):
                return part.decode()
    return None


def main():
    p = argparse.ArgumentParser()
    p.add_argument("render_chat")
    p.add_argument("folders", nargs="+")
    p.add_argument("--cases", type=int, default=40)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--show", action="store_true")
    p.add_argument("--write", action="store_true")
    p.add_argument("--against", action="store_true")
    o = p.parse_args()
    return 0 if all([check(o, folder) for folder in o.folders]) else 1


def check(o, folder):
    r, path_kept = random.Random(o.seed), os.path.join(folder, "answers.jsonl")
    environments, kept = {}, {}
    if o.against:
        with open(path_kept, encoding="utf-8") as f:
            cases = json.loads(f.readline())["cases"]
            kept = {entry["template"]: entry["answers"] for entry in map(json.loads, f)}
    else:
        cases = [single_turn(*turn) for turn in TURNS] + [conversation(r) for _ in range(o.cases)]
        environments = {clock: make_environments(clock) for clock in (0, NOW)}
    good, n_same, n_refused, n_cases = 0, 0, 0, 0
    names = sorted(n for n in os.listdir(folder) if n.endswith(".jinja"))
    if o.against and set(kept) != set(names):
        sys.exit(f"{path_kept} has the answers of other templates than {folder}")
    written = [{"cases": cases}]
    for name in names:
        path = os.path.join(folder, name)
        with open(path, encoding="utf-8", newline="") as f:
            source = f.read()
        answers = drey_answers(o.render_chat, path, cases)
        wanted = kept[name] if o.against else [
            jinja_answer(environments[c.get("now", NOW)], source, c) for c in cases]
        written.append({"template": name, "answers": wanted})
        bad = 0
        for case, (said, why, ranges), want in zip(cases, answers, wanted, strict=True):
            n_cases += 1
            unmarked = said is not None and marks_fail(case, said, ranges)
            if said == want and not unmarked:
                n_same += 1
                n_refused += said is None
                continue
            bad += 1
            if bad == 1 and o.show:
                print(name, json.dumps(case, ensure_ascii=False))
                print("  drey: ", repr(said) if said is not None else why)
                print("  jinja:", repr(want))
                if unmarked:
                    print("  not marked:", repr(unmarked))
        good += bad == 0
        if bad:
            print(f"{name}: {bad} of {len(cases)} cases differ")
    if o.write:
        with open(path_kept, "w", encoding="utf-8") as f:
            for entry in written:
                f.write(json.dumps(entry, ensure_ascii=False) + "\n")
    print(f"{good} of {len(names)} templates agree; {n_same} of {n_cases} cases ({n_refused} of them refused by both)")
    return names and good == len(names)


if __name__ == "__main__":
    sys.exit(main())
