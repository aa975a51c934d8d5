"""drey bench edge and llama.cpp over the same prompts, in turns, in the same memory limits.

For each prompt and limit: first drey's sides (drey bench edge), then another drey's run if --other names
one, then llama-server as it is and with its own speculation (--spec-type draft-simple) for each of
--peer-drafts, all in memory cgroups of their own with a cold page cache (root). drey's --memory is the limit over 1.05; limit 0 is no limit. Chat prompts
go through each program's own reading of the model's chat format.

Every result is a line of --results as soon as it is known, in the columns of drey bench edge, with the
limit as its budget: what is there is not measured again, and drey bench edge --csv tells of it, too.
Files for --prompts: scripts/bench/prompts.jsonl, MT-Bench's question.jsonl, GSM8K's test.jsonl."""
import csv
import json
import os
import subprocess
import sys
import tempfile

from record import figure, median, table
from sides import DRAFT, HERE, MIB, WIDE, Drey, Peer, Stop, commit_of, run as run_command

# In a limit: weights stay in the mapped file, as repacked ones would be memory of the server's own, and
# its buffers are small.
MAPPED = ["--load-mode", "mmap", "--no-repack", "--cache-ram", "0", "-b", "64", "-ub", "64"]
KEY = ("target", "draft", "side", "prompt", "budget_mib", "round", "n_predict")


def add_arguments(p):
    p.add_argument("peer", metavar="PEER_BIN_DIR", nargs="?", help="a folder with llama-server; none: drey alone")
    p.add_argument("--results", metavar="FILE", required=True, help="CSV file to go on with")
    p.add_argument("--target", default=WIDE, help="model (default wide6b)")
    p.add_argument("--draft", default=DRAFT, help="its draft: a model, or a drafter's name (default the 0.5B)")
    p.add_argument("--prompts", default=f"{HERE}/scripts/bench/prompts.jsonl", help="one JSON object a line")
    p.add_argument("--per-group", type=int, help="the first so many prompts of each group (all)")
    p.add_argument("--limits", default="2560,1536", help="MiB; 0: none (default 2560,1536)")
    p.add_argument("--policies", default="spl,optimal", help="of drey (default spl,optimal; all: every one)")
    p.add_argument("--without", help="as for drey bench edge")
    p.add_argument("--tokens", type=int, default=128, help="of each text of drey (default 128)")
    p.add_argument("--peer-tokens", type=int, default=12, help="of the peer's in a limit (default 12)")
    p.add_argument("--peer-memory-tokens", type=int, default=64, help="of the peer's in memory (default 64)")
    p.add_argument("--peer-drafts", default="3:0,8:0.6", metavar="N:P,...",
                   help="the peer's own speculation: tokens, least probability; none: without")
    p.add_argument("--peer-prompts", type=int, help="the first so many of each group (as --per-group)")
    p.add_argument("--other", metavar="DREY", help="another drey, an older one, with its own defaults")
    p.add_argument("--other-sidecar", metavar="FILE", help="the target's sidecar for it")
    p.add_argument("--rate", type=int, metavar="MB/S", help="throttle reads; use a file of its own")
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--more", default="", help="further options of drey bench edge, in one word")


# ---- Results

class Results:
    def __init__(self, path, drey):
        self.path = path
        if not os.path.exists(path):
            self.head = header_of(drey)
            with open(path, "w") as f:
                f.write(",".join(self.head) + "\n")
        with open(path, newline="") as f:
            rows = csv.DictReader(f)
            self.rows = list(rows)
            self.head = rows.fieldnames or []
        if not set(KEY) <= set(self.head):
            raise Stop(f"{path} is there already and holds no results of drey bench edge")

    def has(self, **like):
        return any(all(str(r[k]) == str(v) for k, v in like.items()) for r in self.rows)

    def add(self, row):
        row = {k: row.get(k, "") for k in self.head}
        self.rows.append({k: str(v) for k, v in row.items()})
        with open(self.path, "a") as f:
            f.write(",".join(str(row[k]) for k in self.head) + "\n")


def header_of(drey):
    """The columns that this drey writes: it makes a file of them before it looks at its models."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/csv"
        subprocess.run([drey.program, "bench", "edge", "-m", f"{folder}/none", "--prompts",
                        f"{HERE}/scripts/bench/prompts.jsonl", "--csv", path],
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with open(path) as f:
                return f.readline().strip().split(",")
        except OSError:
            raise Stop(f"{drey.program} has no bench edge") from None


# ---- Prompts, named and grouped as drey does

def name_of(text, size):
    return "".join(c if c.isascii() and c.isalnum() or c in "-_." else "_" for c in text)[:size - 1]


def read_prompts(path):
    prompts = []
    with open(path) as f:
        for number, line in enumerate(f, 1):
            if not line.strip():
                continue
            p = json.loads(line)
            category = "code" if p.get("category") == "coding" else "math" if "question" in p else "chat"
            prompts.append({"id": name_of(str(p.get("id", p.get("question_id", number))), 40),
                            "group": name_of(p.get("group", category), 20), "prompt": p.get("prompt"),
                            "turn": p["turns"][0] if "turns" in p else p.get("question")})
    return prompts


def first_of_each(prompts, n):
    seen, chosen = {}, []
    for p in prompts:
        seen[p["group"]] = seen.get(p["group"], 0) + 1
        if n is None or seen[p["group"]] <= n:
            chosen.append(p)
    return chosen


# ---- The sides

def limited(drey, limit, command, rate, timeout=3600):
    """Standard output of a command in a limit, or without any."""
    if limit or rate:
        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // MIB
        report, out, _ = drey.limits.run(limit or whole, command, rate, may_die=True, timeout=timeout)
        return None if report["oom_kills"] else out
    return run_command(command)


def of_drey(args, drey, results, prompt, limit, round_):
    """Runs what is missing: drey looks into a file in which the limit stands for its budget."""
    memory = limit * MIB * 100 // 105 if limit else 0
    ours = f"{memory / MIB:.6g}"
    csv_path, prompt_path = drey.path("edge.csv"), drey.path("edge.jsonl")
    known = [r for r in results.rows if r["prompt"] == prompt["id"] and float(r["budget_mib"]) == limit]
    with open(csv_path, "w") as f:
        f.write(",".join(results.head) + "\n")
        for r in known:
            f.write(",".join({**r, "budget_mib": ours}[k] for k in results.head) + "\n")
    with open(prompt_path, "w") as f:
        text = {"prompt": prompt["prompt"]} if prompt["prompt"] else {"turns": [prompt["turn"]]}
        f.write(json.dumps({"id": prompt["id"], "group": prompt["group"], **text}) + "\n")
    draft = args.draft if args.draft in ("none", "lookup", "self", "auto") else drey.model(args.draft)
    command = [drey.program, "bench", "edge", "-m", drey.model(args.target), "-d", draft, "-t", drey.threads,
               "--prompts", prompt_path, "--memory", f"{ours}M" if limit else "unlimited", "-n",
               str(args.tokens), "--rounds", str(round_ + 1), "--csv", csv_path, "-q", *args.more.split()]
    command += ["--policies", args.policies] if args.policies != "all" else []
    command += ["--without", args.without] if args.without else []
    try:
        limited(drey, limit, command, args.rate)
    except Stop as stop:
        print(f"{prompt['id']}, {limit} MiB: {str(stop)[-300:]}", file=sys.stderr)
    with open(csv_path, newline="") as f:
        new = list(csv.DictReader(f))[len(known):]
    for r in new:
        results.add({**r, "budget_mib": limit})
        print(f"{prompt['id']}, {limit} MiB, {r['side']}: {figure(float(r['tokens_per_s']))} tokens/s, "
              f"{figure(float(r['tokens_per_pass']))} a pass", flush=True)


def of_peer(args, drey, peer, results, prompt, limit, round_, draft):
    """llama-server's own timing of a text; draft: (side, options)."""
    side, options = draft
    tokens = args.peer_tokens if limit else args.peer_memory_tokens
    row = {"target": os.path.basename(args.target), "side": side, "prompt": prompt["id"],
           "draft": os.path.basename(args.draft) if options else "none", "budget_mib": limit,
           "round": round_, "n_predict": tokens}
    if results.has(**row):
        return
    request = drey.path("request.json")
    body = {"n_predict": tokens, "max_tokens": tokens, "temperature": 0, "ignore_eos": True,
            "cache_prompt": False}
    text = {"prompt": prompt["prompt"]} if prompt["prompt"] else \
        {"messages": [{"role": "user", "content": prompt["turn"]}]}
    with open(request, "w") as f:
        json.dump({"path": "/completion" if prompt["prompt"] else "/v1/chat/completions",
                   "body": {**body, **text}}, f)
    command = ["env", f"LD_LIBRARY_PATH={peer.env['LD_LIBRARY_PATH']}", sys.executable,
               f"{HERE}/scripts/bench/serve_once.py", request, f"{peer.folder}/llama-server", "-m",
               drey.model(args.target), "-t", peer.threads, "-tb", peer.threads, "-np", "1", "-c", "1024",
               "--no-warmup", *(MAPPED if limit else []), *options]
    try:
        out = limited(drey, limit, command, args.rate)
    except Stop as stop:
        print(f"{prompt['id']}, {limit} MiB, {side}: {str(stop)[-300:]}", file=sys.stderr)
        return
    if out is None:
        print(f"{prompt['id']}, {limit} MiB, {side}: killed for its memory", file=sys.stderr)
        return
    t = json.loads(out)["timings"]
    drafted, accepted = t.get("draft_n", 0), t.get("draft_n_accepted", 0)
    passes = max(t["predicted_n"] - 1 - accepted, 1)
    results.add({**{k: 0 for k in results.head}, **row, "group": prompt["group"], "lossy": "no", "head": "",
                 "text": "", "tokens": t["predicted_n"], "tokens_per_s": t["predicted_per_second"],
                 "tokens_per_pass": (t["predicted_n"] - 1) / passes, "passes": passes, "drafted": drafted,
                 "accepted": accepted, "decode_s": t["predicted_ms"] / 1000,
                 "first_token_s": t["prompt_ms"] / 1000})
    print(f"{prompt['id']}, {limit} MiB, {side}: {figure(t['predicted_per_second'])} tokens/s", flush=True)


def of_other(args, drey, results, prompt, limit, round_):
    """Another drey's `run` of the same prompt and model, in the same limit."""
    row = {"target": os.path.basename(args.target), "side": "other drey", "prompt": prompt["id"],
           "draft": os.path.basename(args.draft), "budget_mib": limit, "round": round_,
           "n_predict": args.tokens}
    if results.has(**row):
        return
    other = Drey(args.other, drey.models, drey.threads, drey.folder)
    words = ["--special", "-p", prompt["prompt"]] if prompt["prompt"] else ["--chat", "-p", prompt["turn"]]
    words += ["-d", drey.model(args.draft), "--sidecar", args.other_sidecar or "none"]
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // MIB
    got, text = other.generate(drey.model(args.target), limit or whole, args.tokens, words, args.rate,
                               memory=None if limit else "unlimited")
    results.add({**{k: 0 for k in results.head}, **row, "group": prompt["group"], "lossy": "no", "head": "",
                 "text": "", "tokens": got["generated_tokens"],
                 **{k: got[k] for k in ("tokens_per_s", "tokens_per_pass", "passes", "drafted", "accepted",
                                        "decode_s", "first_token_s")}})
    print(f"{prompt['id']}, {limit} MiB, other drey: {figure(got['tokens_per_s'])} tokens/s, "
          f"{figure(got['tokens_per_pass'])} a pass", flush=True)


def peer_sides(args, drey, peer):
    if not peer:
        return []
    sides = [(peer.name, [])]
    for setting in args.peer_drafts.split(",") if args.peer_drafts != "none" else []:
        n, p = setting.split(":")
        sides.append((f"{peer.name} draft {n}", [
            "-md", drey.model(args.draft), "--spec-type", "draft-simple", "--spec-draft-n-max", n,
            "--spec-draft-p-min", p]))
    return sides


def run(args, drey, record):
    results = Results(args.results, drey)
    peer = Peer(args.peer, args.threads) if args.peer else None
    if peer:
        record.about(peer.name, commit=commit_of(peer.folder))
        if not peer.has("llama-server"):
            raise Stop(f"{args.peer} has no llama-server")
    prompts = first_of_each(read_prompts(args.prompts), args.per_group)
    theirs = first_of_each(prompts, args.peer_prompts)
    limits = [int(limit) for limit in args.limits.split(",")]
    for round_ in range(args.rounds):
        for prompt in prompts:
            for limit in limits:
                of_drey(args, drey, results, prompt, limit, round_)
                if args.other:
                    of_other(args, drey, results, prompt, limit, round_)
                for draft in peer_sides(args, drey, peer) if prompt in theirs else []:
                    of_peer(args, drey, peer, results, prompt, limit, round_, draft)
    for limit in limits:
        show(args, results, limit)


# ---- Medians

def show(args, results, limit):
    """Of each prompt the median of its rounds, of each group the median of its prompts."""
    drafts = {"none", os.path.basename(args.draft)}
    speeds = {}
    for r in results.rows:
        if float(r["budget_mib"]) == limit and r["target"] == os.path.basename(args.target) and r["draft"] in drafts:
            speeds.setdefault(r["side"], {}).setdefault((r["group"], r["prompt"]), []).append(
                float(r["tokens_per_s"]))
    groups = list(dict.fromkeys(group for side in speeds.values() for group, _ in side))
    best = {key: median(rounds) for key, rounds in speeds.get("optimal", {}).items()}
    rows = []
    for side, of in speeds.items():
        row = [side]
        for group in groups:
            have = {key: median(rounds) for key, rounds in of.items() if key[0] == group}
            ratios = [best[key] / speed for key, speed in have.items() if key in best and speed]
            row += [figure(median(list(have.values()))), figure(median(ratios)), str(len(have))]
        rows.append(row)
    head = [f"{os.path.basename(args.target)}, {limit} MiB" if limit else "in memory"]
    for group in groups:
        head += [f"{group}: tokens/s", "optimal over it", "prompts"]
    table("Medians", head, rows)
