"""The beginning of an answer, in every interface: with reasoning, and where the template opens it;
reasoning that stays in the content; texts that are cut off in a character.
serve_begun.py DREY FOLDER"""

from serve_client import *

drey, folder = sys.argv[1:]
TURNS = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
ASKS = "<|im_start|>user\nSay hi<|im_end|>\n<|im_start|>assistant\n"
KEEPS = ("{% for m in messages %}{% if m.role == 'assistant' and loop.last %}{% set r = m.reasoning_content or '' %}<|im_start|>assistant\n"
         "<think>\n{{ r.strip('\n') }}\n</think>\n{{ m.content }}<|im_end|>\n{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}"
         "{% if add_generation_prompt %}<|im_start|>assistant\n{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n{% endif %}{% endif %}")
# Templates, and what the beginnings below become: with reasoning, without it, reasoning alone.
FORMS = {
    "opens": (TURNS + "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}{# </think> #}",
              ASKS + "<think>\nI think\n</think>\n\nHello, ", ASKS + "<think>\n\n</think>\n\nHello, ", ASKS + "<think>\nI think"),
    "line": (TURNS + "{% if add_generation_prompt %}<|im_start|>assistant\n<think>{% endif %}{# </think> #}",
             ASKS + "<think>I think</think>Hello, ", ASKS + "<think></think>Hello, ", ASKS + "<think>I think"),
    "closes": (TURNS + "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n\n</think>\n\n{% endif %}",
               ASKS + "<think>\nI think\n</think>\n\nHello, ", ASKS + "<think>\n\n</think>\n\nHello, ", ASKS + "<think>\nI think"),
    "keeps": (KEEPS, ASKS + "<think>\nI think\n</think>\nHello, ", ASKS + "<think>\n\n</think>\nHello, ", ASKS + "<think>\nI think"),
    "plain": (TURNS + "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}", ASKS + "Hello, ", ASKS + "Hello, ", ASKS),
    "responds": ("{# <|tool_call|> <|end_of_role|> <think></think> #}" + TURNS + "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
                 ASKS + "<think>I think</think><response>Hello, ", ASKS + "Hello, ", ASKS + "<think>I think"),
    "steps": ("{# [BEGIN FINAL RESPONSE] #}" + TURNS + "{% if add_generation_prompt %}<|im_start|>assistant\nHere are my reasoning steps:\n{% endif %}",
              ASKS + "Here are my reasoning steps:\nI think\n[BEGIN FINAL RESPONSE]\nHello, ",
              ASKS + "Here are my reasoning steps:\n\n[BEGIN FINAL RESPONSE]\nHello, ", ASKS + "Here are my reasoning steps:\nI think"),
    "thought": ("{# <|channel>thought\n #}" + TURNS + "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
                ASKS + "<|channel>thought\nI think\n<channel|>Hello, ", ASKS + "Hello, ", ASKS + "<|channel>thought\nI think"),
    "channels": ("{# <|channel|>analysis functions. #}{% for m in messages %}{% if m.role == 'assistant' %}{% if m.thinking %}<|start|>assistant<|channel|>analysis<|message|>"
                 "{{ m.thinking }}<|end|>{% endif %}<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|return|>{% else %}<|start|>{{ m.role }}<|message|>"
                 "{{ m.content }}<|end|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}",
                 "<|start|>user<|message|>Say hi<|end|><|start|>assistant<|channel|>analysis<|message|>I think<|end|><|start|>assistant<|channel|>final<|message|>Hello, ",
                 "<|start|>user<|message|>Say hi<|end|><|start|>assistant<|channel|>final<|message|>Hello, ",
                 "<|start|>user<|message|>Say hi<|end|><|start|>assistant<|channel|>analysis<|message|>I think"),
}
hi = {"role": "user", "content": "Say hi"}
BEGUN = [{"content": "Hello, ", "reasoning_content": "I think"}, {"content": "Hello, "}, {"content": "", "reasoning_content": "I think"}]


def serve(name):
    path = f"{folder}/begun-{name}.jinja"
    with open(path, "w") as f:
        f.write(FORMS[name][0])
    return Server(drey, f"{folder}/toy.gguf", "-d", "none", "-c", "600", "--chat-template", path).wait_ready()


def prompt_of(s, **body):
    status, answer = s.post("/apply-template", body)
    return answer["prompt"] if status == 200 else f"{status} {answer}"


def tokens_of(s, text):
    return len(s.post("/tokenize", {"content": text, "add_special": True})[1]["tokens"])


def prompts(s, name):
    for begun, wanted in zip(BEGUN, FORMS[name][1:]):
        last = {"role": "assistant", **begun}
        for more in {}, {"continue_final_message": True}, {"continue_final_message": True, "add_generation_prompt": False}:
            got = prompt_of(s, messages=[hi, last], **more)
            check(got == wanted, f"{name}, {begun}: {got!r} and not {wanted!r}")
    only = {"role": "assistant", **BEGUN[0]}
    for part, wanted in (("content", FORMS[name][1]), ("reasoning_content", FORMS[name][3])):
        got = prompt_of(s, messages=[hi, only], continue_final_message=part)
        check(got == wanted, f"{name}, the {part} alone: {got!r}")
    if "<think>" in FORMS[name][1]:
        got = prompt_of(s, messages=[hi, {"role": "assistant", "content": "<think>\nI think\n</think>\n\nHello, "}])
        check(got == FORMS[name][1], f"{name}, reasoning in the content: {got!r}")


def dialects(s, name):
    """Each interface has its words for reasoning; the number of tokens says what became of it."""
    for begun, wanted in zip(BEGUN, FORMS[name][1:]):
        n, thought, said = tokens_of(s, wanted), begun.get("reasoning_content"), begun["content"]
        got = s.post("/v1/chat/completions/input_tokens", {"messages": [hi, {"role": "assistant", **begun}]})[1]
        check(got.get("input_tokens") == n, f"{name}, chat, {begun}: {got}, not {n}")
        blocks = ([{"type": "thinking", "thinking": thought, "signature": ""}] if thought else []) + ([{"type": "text", "text": said}] if said else [])
        got = s.post("/v1/messages/count_tokens", {"messages": [hi, {"role": "assistant", "content": blocks}]})[1]
        check(got.get("input_tokens") == n, f"{name}, messages, {begun}: {got}, not {n}")
        items = ([{"type": "reasoning", "content": [{"type": "reasoning_text", "text": thought}]}] if thought else []) + (
            [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]}] if said else [])
        got = s.post("/v1/responses/input_tokens", {"input": [hi, *items]})[1]
        check(got.get("input_tokens") == n, f"{name}, responses, {begun}: {got}, not {n}")
        last = {"role": "assistant", "content": said, **({"thinking": thought} if thought else {})}
        got = s.post("/api/chat", {"messages": [hi, last], "stream": False, "options": {"num_predict": 1}})[1]
        check(got.get("prompt_eval_count") == n, f"{name}, ollama, {begun}: {got}, not {n}")


def read(s, messages, text, **more):
    """(reasoning, content) of an answer that has this text, whole and in events."""
    body = {"messages": messages, "grammar": "root ::= " + json.dumps(text), "max_tokens": 200, **more}
    status, answer = s.post("/v1/chat/completions", body)
    if not check(status == 200, f"{text!r}: {answer}"):
        return None
    message = answer["choices"][0]["message"]
    events = [e["choices"][0]["delta"] for e in s.stream("/v1/chat/completions", body)[1] if isinstance(e, dict) and e["choices"]]
    whole = message.get("reasoning_content", ""), message["content"]
    parts = tuple("".join(e.get(key) or "" for e in events) for key in ("reasoning_content", "content"))
    check(whole == parts, f"{text!r}: {whole} and in events {parts}")
    return whole


def answers(s, name):
    """Checks that what follows a beginning is read as the part that it continues."""
    thinks = {"role": "assistant", "content": None, "reasoning_content": "I think"}
    says = {"role": "assistant", "content": "Hello, ", "reasoning_content": "I think"}
    close = {"channels": "<|end|><|start|>assistant<|channel|>final<|message|>", "line": "</think>"}.get(name, "\n</think>\n\n")
    got = read(s, [hi, thinks], " so" + close + "Hello")
    check(got == (" so", "Hello"), f"{name}, reasoning goes on: {got}")
    got = read(s, [hi, says], "you there")
    check(got == ("", "you there"), f"{name}, content goes on: {got}")


def kept_reasoning(s, name):
    """reasoning_format none: the mark that the template wrote is a part of the content."""
    opened = {"opens": "<think>\n", "line": "<think>"}.get(name, "")
    got = read(s, [hi], "abc\n</think>\n\nHello", reasoning_format="none")
    check(got == ("", opened + "abc\n</think>\n\nHello"), f"{name}, reasoning that stays: {got}")
    got = read(s, [hi, {"role": "assistant", "content": "Hello, "}], "you", reasoning_format="none")
    check(got == ("", "you"), f"{name}, reasoning that stays, after a beginning: {got}")
    body = {"messages": [hi], "grammar": 'root ::= "abc"', "max_tokens": 20, "reasoning_format": "none"}
    said = s.post("/v1/messages", body)[1]["content"]
    check([b["text"] for b in said] == [opened + "abc"], f"{name}, messages: {said}")
    said = s.post("/api/chat", {**body, "stream": False})[1]["message"]
    check(said["content"] == opened + "abc", f"{name}, ollama: {said}")
    said = s.post("/v1/responses", {"input": "Say hi", "grammar": 'root ::= "abc"', "reasoning_format": "none"})[1]["output"]
    check([c["text"] for item in said for c in item["content"]] == [opened + "abc"], f"{name}, responses: {said}")


def half_characters(s):
    """No character that the tokens did not write, wherever a text is cut off."""
    words = "😀é漢字"
    for n in range(1, 12):
        body = {"prompt": "x", "n_predict": n, "max_tokens": n, "temperature": 0, "grammar": "root ::= " + json.dumps(words, ensure_ascii=False)}
        least = words.encode()[:n].decode(errors="ignore")  # if each token is a byte
        for path, more, texts in (
                ("/completion", {}, lambda a: a["content"]), ("/completion", {"n_probs": 2}, lambda a: a["content"]),
                ("/completion", {"stop": [words + "!", "\U0001f601"]}, lambda a: a["content"]), ("/v1/completions", {"logprobs": 2}, lambda a: a["choices"][0]["text"]),
                ("/v1/chat/completions", {"messages": [hi]}, lambda a: a["choices"][0]["message"]["content"]),
                ("/v1/messages", {"messages": [hi]}, lambda a: "".join(b["text"] for b in a["content"])),
                ("/v1/responses", {"input": "hi", "max_output_tokens": n}, lambda a: "".join(c["text"] for o in a["output"] for c in o["content"])),
                ("/api/generate", {"raw": True, "stream": False, "options": {"num_predict": n}}, lambda a: a["response"])):
            asks = {key: value for key, value in body.items() if key != "prompt" or "input" not in more}
            status, answer = s.post(path, {**asks, **more})
            if check(status == 200, f"{path}, {n} tokens: {answer}"):
                got = texts(answer)
                check(words.startswith(got) and got.startswith(least), f"{path}, {more}, {n} tokens: {got!r}, and it begins with {least!r}")
        events = s.request("POST", "/completion", {**body, "stream": True})[2].decode()
        check("\ufffd" not in events and "ufffd" not in events, f"{n} tokens in events: {events[:300]}")
    ran = subprocess.run([drey, "run", "-m", f"{folder}/toy.gguf", "-d", "none", "-q", "-t", "1", "--memory", "unlimited", "-p", "x", "-n", "3",
                          "--grammar", f"{folder}/begun.gbnf"], capture_output=True).stdout
    check(ran.strip() == b"", f"drey run: {ran}")


with open(f"{folder}/begun.gbnf", "w") as f:
    f.write('root ::= "😀é漢字"')
for form in FORMS:
    server = serve(form)
    prompts(server, form)
    dialects(server, form)
    if form in ("opens", "line", "keeps", "channels"):
        answers(server, form)
    if form in ("opens", "line", "keeps"):
        kept_reasoning(server, form)
    if form == "plain":
        half_characters(server)
    check(server.stop() == 0, f"the end: {server.errors()}")
done()
