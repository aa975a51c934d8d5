#!/usr/bin/env python3
"""Makes tests/data/chat/goldens.txt: what Jinja makes of the chat templates beside it.

    pip install jinja2
    scripts/make-chat-goldens.py

Jinja runs as Hugging Face's apply_chat_template sets it up (trim_blocks, lstrip_blocks,
raise_exception), with add_generation_prompt; bos_token is empty because drey adds it as a token,
and strftime_now is left out, so that templates take their own default date. A golden line is
TEMPLATE <tab> SYSTEM <tab> USER <tab> TEXT, with \\n, \\t, \\r and \\\\ written so, and SYSTEM "-"
where there is none. Templates that refuse a system text get it in front of the user's.
"""
import glob
import os

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "data", "chat")

SPACES = "".join(chr(c) for c in range(0x110000) if chr(c).isspace())
TURNS = [
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


def raise_exception(message):
    raise Refused(message)


def render(template, system, user):
    messages = [{"role": "user", "content": user}]
    if system is not None:
        messages.insert(0, {"role": "system", "content": system})
    return template.render(messages=messages, add_generation_prompt=True, bos_token="", eos_token="</s>")


def escape(text):
    for plain, written in (("\\", "\\\\"), ("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r")):
        text = text.replace(plain, written)
    return text


def main():
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = raise_exception
    lines = ["# made by scripts/make-chat-goldens.py: template, system, user, text"]
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.jinja"))):
        name = os.path.basename(path)[:-len(".jinja")]
        with open(path, newline="") as f:
            template = environment.from_string(f.read())
        for system, user in TURNS:
            try:
                text = render(template, system, user)
            except (Refused, jinja2.exceptions.TemplateError):
                text = render(template, None, system + "\n\n" + user)
            shown = "-" if system is None else escape(system)
            lines.append("\t".join((name, shown, escape(user), escape(text))))
    with open(os.path.join(FOLDER, "goldens.txt"), "w") as f:
        f.write("\n".join(lines) + "\n")
    print(len(lines) - 1, "turns")


main()
