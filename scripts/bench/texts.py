"""Texts that several sides write of the same prompts, in turns: what edge, exits and units
share."""
import csv
import datetime
import json
import os
import sys

from record import median
from sides import DRAFT, HERE, MIB, Stop, run as run_command

PROMPTS = f"{HERE}/scripts/bench/prompts.jsonl"
HEAD = 16  # ids whose hash is kept apart, so that texts of different lengths can be compared


# ---- Prompts

def name_of(text, size):
    return "".join(c if c.isascii() and c.isalnum() or c in "-_." else "_" for c in text)[:size - 1]


def read_prompts(path, per_group=None):
    """Reads prompts of a file with a JSON object on each line; the first so many of each group."""
    prompts, seen = [], {}
    with open(path) as f:
        for number, line in enumerate(f, 1):
            if not line.strip():
                continue
            try:
                p = json.loads(line)
                turn = p["turns"][0] if "turns" in p else p.get("question")
            except (ValueError, TypeError, LookupError):
                p, turn = {}, None
            if not p.get("prompt") and not turn:
                raise Stop(f'line {number} of {path} is no prompt: an object with "turns", "prompt" or '
                           '"question" is wanted')
            category = "code" if p.get("category") == "coding" else "math" if "question" in p else "chat"
            one = {"id": name_of(str(p.get("id", p.get("question_id", number))), 40),
                   "group": name_of(p.get("group", category), 20), "prompt": p.get("prompt"), "turn": turn,
                   "line": line}
            seen[one["group"]] = seen.get(one["group"], 0) + 1
            if per_group is None or seen[one["group"]] <= per_group:
                prompts.append(one)
    if not prompts:
        raise Stop(f"{path} holds no prompt")
    return prompts


def request_of(prompt):
    """Returns the path at which a server is asked for it, and the body of the request."""
    return ("/completion", {"prompt": prompt["prompt"]}) if prompt["prompt"] else \
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": prompt["turn"]}]})


# ---- Results

def kept(value):
    """Text of a value, as the file has it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class Results:
    """A CSV file with a line for each text, written as soon as it is known: what is there is not
    measured again. The first columns, up to last_key, identify lines."""

    def __init__(self, path, columns, last_key="n_predict"):
        self.path, self.columns = path, columns.split()
        self.keys = self.columns[:self.columns.index(last_key) + 1]
        self.rows, self.n_failed, head = [], 0, ",".join(self.columns) + "\n"
        self.target_ids = {}  # {prompt: the target's own text}, as far as this invocation wrote it
        self.run = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%S")  # of this invocation
        text = open(path).read() if os.path.exists(path) else ""
        whole = text[:text.rfind("\n") + 1]  # a run that was ended within a line left no line end
        if text and not head.startswith(whole or text) and not whole.startswith(head):
            raise Stop(f"{path} is there already and holds other results; name another file")
        self.rows = list(csv.DictReader(whole.splitlines()))
        if any(None in r.values() or None in r for r in self.rows):
            raise Stop(f"{path} has a damaged line; take it out, or name another file")
        with open(path, "w") as f:
            f.write(whole or head)

    def row(self, row):
        """The one that is there already, by its keys; None: none."""
        return next((r for r in self.rows if all(r[k] == kept(row[k]) for k in self.keys)), None)

    def has(self, row):
        return self.row(row) is not None

    def add(self, row):
        row = {k: kept(row.get(k, 0)) for k in self.columns} | ({"run": self.run} if "run" in self.columns else {})
        self.rows.append(row)
        with open(self.path, "a") as f:
            csv.writer(f, lineterminator="\n").writerow(row[k] for k in self.columns)

    def failed(self, row, why):
        """A side that cannot run is passed over: the others are worth having."""
        self.n_failed += 1
        print(f"{row['prompt']}, {row['budget_mib']} MiB, {row['side']}: {str(why)[-300:]}", file=sys.stderr)

    def end(self):
        """Prints what is said of texts that have to be the same; returns the exit status."""
        n_texts, other = compare(self.rows)
        for line in other:
            print(line)
        if n_texts > 1 and not other:
            print("\nall sides that are not lossy wrote the same texts")
        if self.n_failed:
            print(f"{self.n_failed} texts could not be written", file=sys.stderr)
        return 1 if other or self.n_failed else 0


def rows_of(path):
    """Rows of a file of results, also of earlier versions."""
    try:
        with open(path) as f:
            rows = list(csv.DictReader(f))
    except OSError as error:
        raise Stop(f"{path}: {error.strerror}")
    if not rows or not {"target", "draft", "side", "prompt", "budget_mib"} <= rows[0].keys():
        raise Stop(f"{path} has no texts that several sides wrote")
    return rows


def compare(rows):
    """Counts texts that have to be those of others, and lists a line for each that is not."""
    first, n_texts, other = {}, 0, []
    for r in rows:
        if r["lossy"] == "yes":
            continue
        n_texts += bool(r["text"])
        for key, value in (((r["target"], r["prompt"], r["tokens"]), r["text"]),
                           ((r["target"], r["prompt"]), r.get("head"))):
            if value and first.setdefault(key, (value, r))[0] != value:
                a = first[key][1]
                other.append(f"{r['prompt']}: {r['side']} ({r['budget_mib']} MiB) wrote another text than "
                             f"{a['side']} ({a['budget_mib']} MiB)")
                break
    return n_texts, other


def medians(rows, metric):
    """{(side, group): {prompt: the median of its rounds}}"""
    values = {}
    for r in rows:
        values.setdefault((r["side"], r["group"]), {}).setdefault(r["prompt"], []).append(float(r[metric]))
    return {key: {p: median(v) for p, v in prompts.items()} for key, prompts in values.items()}


# ---- Writing

def add_arguments(p, limits, target, draft="its draft: a model, heads, or a drafter's name (default the 0.5B)"):
    p.add_argument("--target", default=target, help=f"model (default {target})")
    p.add_argument("--draft", default=DRAFT, help=draft)
    p.add_argument("--results", metavar="FILE", required=True, help="CSV file to continue")
    p.add_argument("--show", action="store_true", help="the tables of --results again; nothing is measured")
    p.add_argument("--prompts", default=PROMPTS, help="one JSON object on each line")
    p.add_argument("--per-group", type=int, help="the first so many prompts of each group (all)")
    p.add_argument("--limits", default=limits, metavar="MIB,...",
                   help=f"memory cgroups with a cold page cache (root); 0: none (default {limits})")
    p.add_argument("--budgets", metavar="MIB,...", help="--memory alone, without cgroups; 0: unlimited")
    p.add_argument("--rate", type=int, metavar="MB/S", help="throttle reads; use a separate file")
    p.add_argument("--tokens", type=int, default=128, help="of each text (default 128)")
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--more", default="", metavar="WORDS", help="further options of drey run, in one word")


def turns(args, prompts):
    """(round, prompt, budget), so that all sides of one follow each other."""
    budgets = [int(b) for b in (args.budgets or args.limits).split(",")]
    return [(r, p, b) for r in range(args.rounds) for p in prompts for b in budgets]


def drafter_of(draft):
    """Kind of the draft; a model's file: "model"."""
    return "medusa" if draft.endswith(".drey-medusa") else \
        draft if draft in ("none", "lookup", "self", "medusa") else "model"


def row_of(args, side, prompt, budget, round_, tokens, draft=True):
    kind = drafter_of(args.draft)
    name = os.path.basename(args.draft) if kind == "model" else kind
    return {"target": os.path.basename(args.target), "draft": name if draft else "none", "side": side,
            "prompt": prompt["id"], "group": prompt["group"], "budget_mib": budget, "round": round_,
            "n_predict": tokens}


def path_of(drey, draft):
    return drey.model(draft) if drafter_of(draft) == "model" or os.sep in draft else draft


def limited(drey, limit, command, rate, timeout=3600):
    """Standard output of a command in a limit, or without any; None: killed for its memory."""
    if limit or rate:
        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // MIB
        report, out, _ = drey.limits.run(limit or whole, command, rate, may_die=True, timeout=timeout)
        return None if report["oom_kills"] else out
    return run_command(command)


def write(args, drey, model, prompt, budget, tokens, words):
    """The statistics of a text that drey run writes, the text's own end ignored, with its ids and
    their hashes. In a limit the budget is the limit over 1.05."""
    stats, cgroup = drey.path("stats.json"), budget and not args.budgets
    memory = "unlimited" if not budget else str(budget * MIB * 100 // 105) if cgroup else f"{budget}M"
    command = [drey.program, "run", "-m", drey.model(model), "-t", drey.threads, "--memory", memory, "-n",
               str(tokens), "--ignore-eos", "--raw-ids", "-q", "--stats", stats, *words, *args.more.split()]
    text = ["-p", prompt["prompt"]] if prompt["prompt"] else ["--chat", "-p", prompt["turn"]]
    out = limited(drey, budget if cgroup else 0, command + text, args.rate)
    if out is None:
        raise Stop("killed for its memory")
    ids = [int(i) for i in out.split()]
    with open(stats) as f:
        return {**json.load(f), "ids": ids, "text": hash_of(ids),
                "head": hash_of(ids[:HEAD]) if len(ids) >= HEAD else ""}


def agreement(ids, target):
    """Share of places of a lossy text that have the target's own token."""
    return sum(a == b for a, b in zip(ids, target)) / max(len(ids), len(target), 1)


def rouge_l(ids, target):
    """The F-measure of the longest common subsequence of tokens (Lin 2004)."""
    row = [0] * (len(target) + 1)
    for a in ids:
        before = 0  # row[j] of the token before a
        for j, b in enumerate(target):
            before, row[j + 1] = row[j + 1], before + 1 if a == b else max(row[j + 1], row[j])
    return 2 * row[-1] / (len(ids) + len(target)) if ids and target else 0


def hash_of(ids):
    """FNV-1a of the ids, as results of earlier versions have it."""
    value = 0xcbf29ce484222325
    for byte in b"".join(i.to_bytes(4, "little") for i in ids):
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return f"{value:016x}"
