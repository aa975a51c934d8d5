"""Tries out every example of docs/reference/server*.md: the answer has the members that are shown.
serve_docs.py DREY FOLDER"""
import glob, shlex

from serve_client import *

drey, folder = sys.argv[1:]
there = "http://localhost:8080"


def has(shown, got, where):
    """Checks that what is shown is in what came: members of objects, the first element of arrays,
    types of the rest."""
    if isinstance(shown, dict):
        if check(isinstance(got, dict), f"{where}: {got} is no object"):
            for key, value in shown.items():
                if check(key in got, f"{where} has no {key}: {str(got)[:200]}"):
                    has(value, got[key], f"{where}.{key}")
    elif isinstance(shown, list):
        if check(isinstance(got, list) and bool(got) >= bool(shown), f"{where}: {got}"):
            for value in shown[:1]:
                has(value, got[0], f"{where}[0]")
    elif isinstance(shown, bool) or shown is None or (isinstance(shown, str) and shown != "..."):
        check(got == shown or where.endswith(("finish_reason", "stop_type", "finish", "stop_reason")), f"{where} is {got!r} and not {shown!r}")
    else:
        kind = str if shown == "..." else (int, float)
        check(isinstance(got, kind) and not isinstance(got, bool), f"{where} is {got!r}")


def curl(s, command):
    words = shlex.split(command)
    url = next(w for w in words if w.startswith(there))
    body = words[words.index("-d") + 1] if "-d" in words else None
    status, _, text = s.request("POST" if body else "GET", url[len(there):], body)
    return status, text.decode()


def try_events(text, shown, where):
    events = [line[6:] for line in text.split("\n\n") if line.startswith("data: ")]
    at = 0
    for line in shown.strip().splitlines():
        if line == "[DONE]":
            check(events[-1] == line, f"{where}: it ends with {events[-1]}")
            continue
        wanted = json.loads(line)
        at = next((i for i in range(at, len(events) - 1) if fits(wanted, json.loads(events[i]))), None)
        if not check(at is not None, f"{where}: no event like {line} where it should be in {events}"):
            return
        has(wanted, json.loads(events[at]), where)
        at += 1


def fits(wanted, event):
    """Is the event of this kind?"""
    if "prompt_progress" in wanted or "prompt_progress" in event:
        return "prompt_progress" in wanted and "prompt_progress" in event
    a, b = wanted["choices"], event["choices"]
    return bool(a) == bool(b) and (not a or (set(a[0]["delta"]) == set(b[0]["delta"]) and bool(a[0]["finish_reason"]) == bool(b[0]["finish_reason"])))


def main():
    text = "".join(open(page).read() for page in sorted(glob.glob("docs/reference/server*.md")))
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", text, re.M | re.S)
    s = Server(drey, f"{folder}/toy.gguf", "-d", f"{folder}/draft.gguf", "-c", "1024").wait_ready()
    n_tried = 0
    for (kind, command), (shown_kind, shown) in zip(blocks, blocks[1:] + [("", "")]):
        where = command.split("\n")[0][:60]
        if kind == "python":
            try:
                import openai  # noqa: F401
                subprocess.run([sys.executable, "-c", command.replace(there, s.address)], check=True, capture_output=True)
            except ImportError:
                print("not run: the openai client is not installed (pip install openai)")
        if kind != "sh" or not command.startswith("curl"):
            continue
        status, answer = curl(s, command)
        n_tried += 1
        if shown_kind == "json":
            shown = json.loads(shown)
            check(status == shown.get("error", {}).get("code", 200) if isinstance(shown, dict) else status == 200, f"{where}: {status} {answer[:300]}")
            has(shown, json.loads(answer), where)
        elif shown_kind == "events":
            try_events(answer, shown, where)
        elif shown_kind == "metrics":
            names = {line.split("{")[0].split()[0] for line in answer.splitlines() if not line.startswith("#")}
            check(names - {"drey:budget_limit_bytes", "llamacpp:spec_decode_num_accepted_tokens_per_pos_total"} == set(shown.split()), f"metrics: {names ^ set(shown.split())}")
        else:
            wrong(f"{where}: no answer is shown")
    check(n_tried >= 12, f"{n_tried} examples were found")
    # Every endpoint that there is is named there.
    routes = set(re.findall(r'^    \{"(/[^"]*)"', open("serve/api/routes.c").read(), re.M))
    for path in routes - {"/index.html", "/v1/health", "/models", "/completions", "/chat/completions", "/chat/completions/input_tokens", "/responses"}:
        check(re.search(re.escape(path) + r"[`\s?]", text), f"docs/reference does not name {path}")
    check(s.stop() == 0, "the server's end")


main()
done()
