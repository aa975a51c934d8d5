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
done()
