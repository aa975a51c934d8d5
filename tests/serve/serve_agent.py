"""Agents: long conversations that grow, are edited in the middle, take turns, and whose template
drops reasoning. What is known of a prompt is the longest beginning that any text before had, in
sessions, in memory and in the folder, also after a restart; and the text is that of a server that
knows nothing. serve_agent.py DREY FOLDER"""

from serve_client import *

drey, folder = sys.argv[1:]
model, kept = f"{folder}/toy.gguf", f"{folder}/agents"
chat = "/v1/chat/completions"
WRITES = 6
# Tools first; reasoning of turns before the last question is dropped, as Qwen3's template does.
TEMPLATE = f"{folder}/agent.jinja"
with open(TEMPLATE, "w") as f:
    f.write("{% if tools %}<|im_start|>system\n{% for t in tools %}{{ t.function.name }} {{ t.function.parameters | tojson }}\n{% endfor %}<|im_end|>\n{% endif %}"
            "{% set last = namespace(at=0) %}{% for m in messages %}{% if m.role == 'user' %}{% set last.at = loop.index0 %}{% endif %}{% endfor %}"
            "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.reasoning_content and loop.index0 > last.at %}<think>{{ m.reasoning_content }}</think>\n{% endif %}"
            "{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function.name }} {{ c.function.arguments | tojson }}</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
OPTIONS = ["-d", "none", "-c", "4000", "--chat-template", TEMPLATE]
KEEPS = ["--prefix-memory", "4M", "--prefix-folder", kept]
TOOLS = [{"type": "function", "function": {"name": f"tool_{i}", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}} for i in range(4)]


def words(seed, n):
    return " ".join("the tree root leaf draft of and is not for branch".split()[(seed * 7 + i * i + i // 3) % 11] for i in range(n))


def history(agent, n_turns):
    m = [{"role": "system", "content": f"Agent {agent}: " + words(agent, 40)}]
    for turn in range(n_turns):
        m.append({"role": "user", "content": f"Question {turn}: " + words(agent + turn, 12)})
        m.append({"role": "assistant", "content": "", "reasoning_content": words(turn, 9),
                  "tool_calls": [{"id": f"c{turn}", "type": "function", "function": {"name": "tool_1", "arguments": json.dumps({"path": f"file{turn}"})}}]})
        m.append({"role": "tool", "tool_call_id": f"c{turn}", "content": words(3 * agent + turn, 60)})
        m.append({"role": "assistant", "content": "Answer " + words(turn + 5, 8), "reasoning_content": words(turn + 1, 9)})
    return m + [{"role": "user", "content": f"Question {n_turns}: " + words(agent + n_turns, 12)}]


def n_same(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


class Agents:
    """The conversations that a server has seen, and what it should know of the next one."""

    def __init__(self, seen=(), *options):
        self.s = Server(drey, model, *OPTIONS, *options).wait_ready()
        self.seen = list(seen)

    def ids(self, messages):
        status, prompt = self.s.post("/apply-template", {"messages": messages, "tools": TOOLS})
        return self.s.post("/tokenize", {"content": prompt["prompt"]})[1]["tokens"]

    def common(self, ids):
        return max((n_same(ids, old) for old in self.seen), default=0)

    def ask(self, what, messages, message=None, **more):
        """The text, and what was known; message: the one that differs, if it is known."""
        status, answer = self.s.post(chat, {"messages": messages, "tools": TOOLS, "tool_choice": "none", "max_tokens": WRITES, "temperature": 0, **more})
        if not check(status == 200, f"{what}: {answer}"):
            return None, None
        prefix, ids = answer["drey"]["prefix"], self.ids(messages)
        common = min(self.common(ids), len(ids) - 1)
        if more.get("cache_prompt") is False or common < 16:  # what the folder keeps at least of a text
            common = 0
        check(common <= prefix["tokens"] <= min(common + WRITES, len(ids) - 1) or common == 0, f"{what}: {prefix}, but {common} of {len(ids)} tokens were there before")
        check(message is None or prefix["differs_at_message"] == message, f"{what}: {prefix}, but message {message} differs")
        self.seen.append(ids)
        return answer["choices"][0]["message"]["content"], prefix


def fresh_text(messages):
    return nothing.ask("alone", messages, cache_prompt=False)[0]


def one_agent(a, known):
    """known: nothing is computed for the first time."""
    for turn in range(1, 4):
        text, prefix = a.ask(f"turn {turn}", history(1, turn))
        check(text == fresh_text(history(1, turn)), f"turn {turn}: another text")
    edited = history(1, 3)
    at = 7
    edited[at] = dict(edited[at], content="This was edited: " + edited[at]["content"])
    text, prefix = a.ask("an edit in the middle", edited, None if known else at)
    check(text == fresh_text(edited), "an edit in the middle: another text")
    text, prefix = a.ask("the edit taken back", history(1, 3))
    check(prefix["tokens"] == prefix["session"] + prefix["other_session"] + prefix["memory"] + prefix["folder"], f"where it came from: {prefix}")
    back = history(1, 2)
    text, prefix = a.ask("back to an earlier turn", back)
    check(text == fresh_text(back), "an earlier turn: another text")


def in_turns(a):
    """Two agents with one session."""
    for turn in range(1, 4):
        for agent in 2, 3:
            text, prefix = a.ask(f"agent {agent}, turn {turn}", history(agent, turn))
            check(turn == 1 or prefix["session"] < prefix["tokens"], f"agent {agent} never had the session for itself: {prefix}")
            check(text == fresh_text(history(agent, turn)), f"agent {agent}, turn {turn}: another text")


def at_once():
    """Four agents with four sessions."""
    a = Agents((), "--sessions", "4", "--prefix-memory", "4M")
    wanted, got = {}, []
    for agent in range(4):
        for turn in 1, 2, 3:
            wanted[agent, turn] = fresh_text(history(agent, turn))

    def work(agent):
        for turn in 1, 2, 3:
            status, answer = a.s.post(chat, {"messages": history(agent, turn), "tools": TOOLS, "tool_choice": "none", "max_tokens": WRITES, "temperature": 0})
            got.append((agent, turn, answer))
    together(work, range(4))
    for agent, turn, answer in got:
        check(answer["choices"][0]["message"]["content"] == wanted[agent, turn], f"agent {agent} of four, turn {turn}: another text")
        common = n_same(*(a.ids(history(agent, t)) for t in (turn - 1, turn)))
        check(turn == 1 or answer["drey"]["prefix"]["tokens"] >= common, f"agent {agent} of four, turn {turn}: {answer['drey']['prefix']}, but {common} tokens are the same")
    check(a.s.stop() == 0, f"the end of four agents: {a.s.errors()}")


def dropped(a):
    """The answer's reasoning is in the prompt until the next question, and then no more."""
    with_it = history(4, 2)[:-1]
    text, prefix = a.ask("with reasoning", with_it[:-1] + [dict(with_it[-1], content="Answer")], continue_final_message=False)
    after = history(4, 2)
    text, prefix = a.ask("without reasoning", after)
    check(0 < prefix["tokens"] < len(a.ids(after)) - 20, f"the reasoning was not dropped: {prefix}")
    check(text == fresh_text(after), "after dropped reasoning: another text")


nothing = Agents((), "--sessions", "1")
a = Agents((), "--sessions", "1", *KEEPS)
one_agent(a, False)
in_turns(a)
dropped(a)
check(a.s.stop() == 0, f"the end of an agent's server: {a.s.errors()}")
a = Agents(a.seen, "--sessions", "2", *KEEPS)
_, prefix = a.ask("after a restart", history(1, 4))
check(prefix["folder"] == prefix["tokens"] > 500, f"after a restart: {prefix}")
one_agent(a, True)
check(a.s.stop() == 0, f"the end after a restart: {a.s.errors()}")
at_once()
check(nothing.s.stop() == 0, f"the end: {nothing.s.errors()}")
done()
