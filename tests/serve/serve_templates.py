"""Templates that a model's file has under names besides the usual one: that for tools, and others.
serve_templates.py DREY FOLDER"""

from serve_client import *

sys.path.insert(0, "scripts")
from gguf_file import Gguf, header  # noqa: E402

drey, folder = sys.argv[1:]
CALL = '<tool_call>\n{"name": n, "arguments": a}\n</tool_call>'
TURNS = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
NAMED = {"tool_use": "[tools]{% for t in tools %}{{ t.function.name }} {% endfor %}" + CALL + TURNS, "rag": "[rag]" + TURNS}
hi = [{"role": "user", "content": "hi"}]
NOW = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}


def model(name, usual, named):
    """The toy with these templates alone."""
    toy = Gguf(f"{folder}/toy.gguf")
    keys = [k for k in toy.keys if not k[0].startswith(b"tokenizer.chat_template")]
    keys += [[b"tokenizer.chat_template", 8, usual.encode()]] if usual else []
    keys += [[b"tokenizer.chat_templates", 9, (8, [key.encode() for key in named])]]
    keys += [[b"tokenizer.chat_template." + key.encode(), 8, text.encode()] for key, text in named.items()]
    path = f"{folder}/{name}.gguf"
    with open(path, "wb") as f:
        f.write(header(keys, toy.tensors, toy.align))
        f.write(toy.bytes_at(toy.base, toy.n_bytes - toy.base))
    return path


def prompt(s, **body):
    status, answer = s.post("/apply-template", {"messages": hi, **body})
    return answer["prompt"] if status == 200 else f"{status} {answer}"


def serve(path, *options):
    return Server(drey, path, "-d", "none", "-c", "1000", *options).wait_ready()


path = model("named", TURNS, NAMED)
s = serve(path)
check(prompt(s) == "[user]hi[assistant]", f"without tools: {prompt(s)!r}")
check(prompt(s, tools=[]) == "[user]hi[assistant]", f"with an empty list: {prompt(s, tools=[])!r}")
wanted = "[tools]now " + CALL + "[user]hi[assistant]"
check(prompt(s, tools=[NOW]) == wanted, f"with tools: {prompt(s, tools=[NOW])!r}")
n = len(s.post("/tokenize", {"content": wanted, "add_special": True})[1]["tokens"])
for where, body in (("/v1/chat/completions/input_tokens", {"messages": hi, "tools": [NOW]}),
                    ("/v1/responses/input_tokens", {"input": "hi", "tools": [{"type": "function", "name": "now", "parameters": NOW["function"]["parameters"]}]}),
                    ("/v1/messages/count_tokens", {"messages": hi, "tools": [{"name": "now", "input_schema": NOW["function"]["parameters"]}]})):
    got = s.post(where, body)[1]
    check(got.get("input_tokens") == n, f"{where}: {got}, not {n}")
status, answer = s.post("/v1/chat/completions", {"messages": hi, "tools": [NOW], "tool_choice": "required", "max_tokens": 300,
                                                 "grammar": None, "parallel_tool_calls": False, "temperature": 0})
check(status == 200 and "tool_calls" in answer["choices"][0]["message"], f"a call by the template for tools: {answer}")
props = json.loads(s.get("/props")[1])
check(props["chat_template"] == TURNS and props.get("chat_template_tool_use") == NAMED["tool_use"], f"/props: {props.get('chat_template_tool_use')}")
check(s.stop() == 0, "the end")
s = serve(path, "--chat-template", "rag")
check(prompt(s, tools=[NOW]).startswith("[rag]") or "[rag]" in prompt(s), f"--chat-template rag: {prompt(s)!r}")
check(s.stop() == 0, "the end")
shown = subprocess.run([drey, "inspect", path], capture_output=True, text=True, check=True).stdout
check("chat templates\n  tool_use: for chats with tools\n  rag: " in shown, f"inspect: {shown[-300:]}")
shown = subprocess.run([drey, "inspect", f"{folder}/toy.gguf"], capture_output=True, text=True, check=True).stdout
check("chat templates" not in shown, "inspect of a file without names")
s = serve(model("default", "", {"default": TURNS, "tool_use": NAMED["tool_use"]}))
check(prompt(s) == "[user]hi[assistant]" and prompt(s, tools=[NOW]) == wanted, f"a template named default: {prompt(s)!r}")
check(s.stop() == 0, "the end")


def roles(s, known):
    """Roles that the template knows are taken, others refused, in each interface's words."""
    for role in ("system", "user", "assistant", "tool", "function", "developer", *known, "foo", "User", "", "<|x|>", "x" * 100):
        good = role in ("system", "user", "assistant", "tool", "function", "developer", *known)
        status, answer = s.post("/apply-template", {"messages": [{"role": role, "content": "a"}, *hi]})
        check(status == (200 if good else 400) and (good or "'role'" in answer["error"]["message"]), f"the role {role!r}: {status} {answer}")
    got = prompt(s, messages=[{"role": "developer", "content": "a"}, *hi])
    check(got == ("[developer]" if "developer" in known else "[system]") + "a[user]hi[assistant]", f"the developer's instructions: {got!r}")
    chat, ask = "/v1/chat/completions", {"max_tokens": 1}
    for where, body in ((chat, {"messages": [{"role": "foo", "content": "a"}]}), ("/v1/messages", {"messages": [{"role": "foo", "content": "a"}]}),
                        ("/v1/messages", {"messages": [{"role": "tool", "content": [{"type": "text", "text": "a"}]}]}),
                        ("/v1/responses", {"input": [{"role": "foo", "content": "a"}]}), ("/api/chat", {"messages": [{"role": "foo", "content": "a"}]}),
                        (chat, {"messages": [{"role": "user", "content": None}]}), (chat, {"messages": [{"role": "user"}]}),
                        (chat, {"messages": [{"role": "system", "content": None}, *hi]}), (chat, {"messages": [{"role": "developer"}, *hi]}),
                        ("/v1/messages", {"messages": [{"role": "user", "content": None}]}), ("/v1/responses", {"input": [{"role": "user", "content": None}]}),
                        ("/v1/responses", {"input": [{"type": "message", "role": "system"}, *hi]}), ("/apply-template", {"messages": [{"role": "user", "content": None}]})):
        status, answer = s.post(where, {**ask, **body})
        check(status == 400 and answer.get("error"), f"{where} {body}: {status} {answer}")
    for message in ({"role": "assistant", "content": None}, {"role": "assistant", "content": ""}, {"role": "user", "content": ""}, {"role": "user", "content": []}):
        status, answer = s.post(chat, {**ask, "messages": [message, *hi]})
        check(status == 200, f"{message}: {status} {answer}")


def strict(s):
    """Tools come from strangers; a strict one is held to its schema, or the answer is no."""
    for schema, good in (({"type": "object", "properties": {"a": {"type": "string"}}}, True), ({"type": "object", "properties": {"a": {"pattern": "(?=a)b"}}}, False)):
        for more in {"strict": True}, {"strict": False}, {}:
            status, answer = s.post("/v1/chat/completions", {"messages": hi, "max_tokens": 1, "tools": [{"type": "function", "function": {"name": "f", "parameters": schema, **more}}]})
            wanted = 200 if good or not more.get("strict") else 400
            check(status == wanted and (wanted == 200 or '"f" is strict' in answer["error"]["message"]), f"{more} {schema}: {status} {answer}")


for known, front in (((), "{{ '' if '<|x|>' else '' }}"), (("ipython", "developer"), "{% if messages[0].role == 'ipython' or messages[0].role == \"developer\" %}{% endif %}")):
    with open(f"{folder}/roles.jinja", "w") as f:
        f.write(front + TURNS)
    s = serve(path, "--chat-template", f"{folder}/roles.jinja")
    roles(s, known)
    strict(s)
    check(s.stop() == 0, "the end")
done()
