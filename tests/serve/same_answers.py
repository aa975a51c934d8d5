"""One conversation, greedily, four ways: drey run, drey chat, drey serve, and examples/chat.c over
the library. All four write the same answer, whatever drafts for each of them.
same_answers.py DREY CHAT MODEL.gguf DRAFT"""
from serve_client import *

drey, chat_program, model, draft = sys.argv[1:]
N = 24
conversations = [("", "Why is the sky blue?"), ("Be brief.", "Count from one to five."), ("Sei höflich: grüße — 你好 👋", "  <|im_end|> what is that? ")]


def is_toy():
    return model.endswith("toy.gguf")


def output(command, typed=""):
    done = subprocess.run(command, input=typed.encode(), capture_output=True)
    check(done.returncode == 0, f"{command[:2]}: {done.stderr[-500:]}")
    return done.stdout.decode("utf-8", "replace")


def shown(messages):
    return "".join(f"{m['role']}: {m['content']} | " for m in messages)[-200:]


def from_run(prompt, *options):
    return output([drey, "run", "-m", model, "-d", draft, "--policy", "specinfer", "-q", "-t", "1", "-n", str(N), "-p", prompt, *options])


def from_chat(messages):
    """The last answer."""
    system = [m["content"] for m in messages if m["role"] == "system"]
    said = [m["content"] for m in messages if m["role"] == "user"]
    before = [m["content"] for m in messages if m["role"] == "assistant"]
    text = output([drey, "chat", "-m", model, "-d", "lookup", "-q", "-t", "2", "-n", str(N), "--system", "".join(system)], "".join(f"{m}\n" for m in said))
    for answer in before:
        check(text.startswith(answer + "\n"), f"drey chat answered otherwise before {shown(messages)}: {text!r}")
        text = text[len(answer) + 1:]
    return text.removesuffix("\n")


def from_library(messages):
    system = messages[0]["content"] if messages[0]["role"] == "system" else ""
    return output([chat_program, model, str(N), system, *(m["content"] for m in messages if m["role"] != "system")]).removesuffix("\n")


def from_server(s, messages):
    body = {"messages": messages, "max_tokens": N}
    status, answer = s.post("/v1/chat/completions", body)
    check(status == 200, f"{answer}")
    text = answer["choices"][0]["message"]["content"]
    events = s.stream("/v1/chat/completions", body)[1]
    parts = [e["choices"][0]["delta"].get("content") or "" for e in events if isinstance(e, dict) and e["choices"]]
    check("".join(parts) == text, f"another answer in events: {parts}")
    return text


def same(s, messages):
    """The answer, and the prompt in the model's format."""
    prompt = s.post("/apply-template", {"messages": messages})[1]["prompt"]
    answers = {"drey chat": from_chat(messages), "the library": from_library(messages), "drey serve": from_server(s, messages)}
    if len(messages) < 3:  # it knows one message of the user
        system = ["--system", messages[0]["content"]] if messages[0]["role"] == "system" else []
        answers["drey run"] = from_run(messages[-1]["content"], "--chat", *system)
    if not any("<|" in m["content"] for m in messages):  # there special tokens of messages would count
        answers["drey run, with the prompt of a template"] = from_run(prompt, "--special")
        answers["drey serve, with the prompt of a template"] = s.post("/v1/completions", {"prompt": prompt, "max_tokens": N})[1]["choices"][0]["text"]
    text = answers["drey serve"]
    check(len(text) > 1, f"no answer to {shown(messages)}")
    for way, answer in answers.items():
        check(answer == text, f"{way} answers {answer!r} and drey serve {text!r} to {shown(messages)}")
    return text


def is_sayable(text):
    """Can it be in JSON and among arguments, as the same bytes?"""
    return not re.search("[\ufffd\0]", text)


def clean_question(s):
    """Toys write all kinds of bytes: one whose answer is a text."""
    for i in range(400):
        message = {"role": "user", "content": f"Question {i}?"}
        if is_sayable(s.post("/v1/chat/completions", {"messages": [message], "max_tokens": N})[1]["choices"][0]["message"]["content"]):
            return message
    wrong("no question has an answer that is a text")
    raise SystemExit(1)


def main():
    global N
    s = Server(drey, model, "-d", draft, "--policy", "optimal", "--sessions", "2", "-c", "1024").wait_ready()
    for system, message in conversations:
        same(s, ([{"role": "system", "content": system}] if system else []) + [{"role": "user", "content": message}])
    N = 5 if is_toy() else N
    messages = [clean_question(s)]
    for again in ("And then?", "Why?"):
        answer = same(s, messages)
        if not is_sayable(answer):
            break
        messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": again}]
    check(len(messages) > 1, "no conversation of several turns")
    check(s.stop() == 0, f"the server's end: {s.errors()[-300:]}")


def from_file():
    """Two texts at once whose keys and values do not fit into memory, by a server that has them in
    a file and by one that needs none."""
    folder = os.path.dirname(os.path.abspath(model)) if is_toy() else tempfile.gettempdir()
    if subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True).stdout.strip() == "tmpfs":
        return print(f"not run: {folder} is in memory")
    bodies = [{"prompt": f"Nuts of the year {i}. " * 60, "max_tokens": N, "ignore_eos": True} for i in range(2)]
    answers = []
    for options in [], ["--kv-folder", folder, "--kv-memory", "1"]:
        s = Server(drey, model, "--sessions", "2", "-c", "2048", *options).wait_ready()
        got = {}
        together(lambda i: got.update({i: s.post("/v1/completions", bodies[i])[1]}), range(2))
        answers.append([got[i] for i in range(2)])
        check(s.stop() == 0, f"the server's end: {s.errors()[-300:]}")
    texts = [[a["choices"][0]["text"] for a in of_server] for of_server in answers]
    check(texts[0] == texts[1] and all(texts[0]), f"keys and values in a file: {texts}")
    check(all(a["usage"]["prompt_tokens"] > 400 for a in answers[1]), "the prompts are short")


main()
from_file()
done()
