"""Policies of drey, with parts left out, and llama.cpp over the same prompts, in turns, in the same
memory.

For each prompt and limit: first drey's sides (drey run --policy, --without), then another drey's
run if --other names one, then llama-server as it is and with its own speculation (--spec-type
draft-simple) for each of --peer-drafts, all in memory cgroups of their own with a cold page cache
(root). drey's --memory is the limit over 1.05; limit 0 is no limit. With --budgets drey's sides run
with that --memory and without cgroups. Chat prompts go through each program's own reading of the
model's chat format.

Every result is a line of --results as soon as it is known: what is there is not measured again. The
status is 1 where sides that are not lossy wrote different texts. scripts/draw.py draws the results.
Files for --prompts: scripts/bench/prompts.jsonl, MT-Bench's question.jsonl, GSM8K's test.jsonl."""
import json
import os
import sys

from record import figure, median, table
from sides import HERE, WIDE, Drey, Stop, chosen, peer_of
from texts import (Results, agreement, drafter_of, limited, medians, path_of, read_prompts, request_of,
                   rouge_l, row_of, rows_of, turns, write)
import energy
import texts
import waits

COLUMNS = ("target draft side prompt group budget_mib round n_predict tokens tokens_per_s tokens_per_pass "
           "passes drafted accepted decode_s first_token_s stall_share verify_share draft_share hidden_share "
           "differed lossy agreement rouge_l joules " + " ".join(waits.COLUMNS) + " run head text")
# In a limit: weights stay in the mapped file, as repacked ones would be memory of the server's own,
# and its buffers are small.
MAPPED = ["--load-mode", "mmap", "--no-repack", "--cache-ram", "0", "-b", "64", "-ub", "64"]
# What neither a server's timing nor an older drey's statistics have.
UNKNOWN = dict.fromkeys([*waits.COLUMNS, "agreement", "rouge_l", "joules"], "")
POLICIES = ("std", "spl", "draft", "sequence", "bld", "specinfer", "llmcad", "edgellm", "static", "optimal")
PEERS = ("llama", "ik_llama")
PLAIN, FOLLOWS, CHAINS = ("std", "spl"), ("llmcad", "edgellm"), ("sequence", "bld")
PARTS = ("tree", "fallback", "batching", "provisional", "slice", "lookup")


def add_arguments(p):
    p.add_argument("peer", metavar="PEER_BIN_DIR", nargs="?", help="a folder with llama-server; none: drey alone")
    texts.add_arguments(p, "2560,1536", WIDE)
    p.add_argument("--policies", default="spl,optimal", help="of drey (default spl,optimal; all: every one)")
    p.add_argument("--without", metavar="PART,...",
                   help="leave out each of these of each policy that has it (all: what there is)")
    p.add_argument("--more-draft", default="", metavar="WORDS", help="further options where there is a draft")
    p.add_argument("--plain-tokens", type=int, help="of each text without a draft (default as --tokens)")
    p.add_argument("--peer-tokens", type=int, default=12, help="of the peer's in a limit (default 12)")
    p.add_argument("--peer-memory-tokens", type=int, default=64, help="of the peer's in memory (default 64)")
    p.add_argument("--peer-drafts", default="3:0,8:0.6", metavar="N:P,...",
                   help="the peer's own speculation: tokens, least probability; none: without")
    p.add_argument("--peer-prompts", type=int, help="the first so many of each group (as --per-group)")
    p.add_argument("--over", metavar="SIDE", default="optimal", help="whose ratios over the others are shown (optimal)")
    p.add_argument("--other", metavar="DREY", help="another drey, an older one, with its own defaults")
    p.add_argument("--other-sidecar", metavar="FILE", help="the target's sidecar for it")


# ---- The sides

def has_part(policy, part, drafter, more):
    """Parts that make a difference to the policy. All but the draft alone draft several nodes in a
    step while a pass waits; heads have lookup with them by themselves, others where it is asked
    for."""
    if policy in PLAIN or drafter == "none":
        return False
    asked = "--with lookup" in more
    return {"tree": policy in FOLLOWS + ("specinfer", "optimal"), "fallback": policy in FOLLOWS,
            "batching": policy != "draft", "provisional": policy != "draft", "slice": drafter == "model",
            "lookup": policy != "draft" and (asked and drafter != "lookup" or
                                             drafter == "medusa" and policy == "optimal")}[part]


def sides_of(args, drey):
    """(name, policy, words of drey run): policies, then policies without a part."""
    drafter, words = drafter_of(args.draft), args.more_draft.split()
    policies = list(POLICIES) if args.policies == "all" else chosen(args.policies, POLICIES, "policy")
    for p in policies:
        if args.policies != "all" and not can_draft(p, drafter):
            raise Stop(f"the policy {p} needs a draft: name one with --draft")
    policies = [p for p in policies if can_draft(p, drafter)]
    parts = [] if not args.without else PARTS if args.without == "all" else chosen(args.without, PARTS, "part")
    sides = []
    for part in (None, *parts):
        of = [p for p in policies if not part or has_part(p, part, drafter, args.more_draft)]
        if not of and args.without != "all":
            raise Stop(f"--without {part} makes no difference to any of these policies with this draft")
        for p in of:
            if p in PLAIN:
                sides.append((p, p, ["-d", "none", "--policy", p]))
                continue
            own = list(words)
            if part == "lookup" and "--with" in own:
                del own[own.index("--with"):][:2]
            sides.append((f"{p} without {part}" if part else p, p, [
                "-d", path_of(drey, args.draft), "--policy", p, *own, *(["--without", part] if part else [])]))
    return sides


def can_draft(policy, drafter):
    return policy in PLAIN or drafter == "model" or drafter != "none" and policy != "draft"


def say(row, got):
    print(f"{row['prompt']}, {row['budget_mib']} MiB, {row['side']}: {figure(got['tokens_per_s'])} tokens/s, "
          f"{figure(got['tokens_per_pass'])} per pass", flush=True)


def likeness(got, prompt, results):
    """Likeness of a lossy text to the target's own; the text of any other side is kept. Unknown
    until one has run in this invocation."""
    if not got["speculation"]["lossy"]:
        results.target_ids.setdefault(prompt["id"], got["ids"])
        return {"agreement": 1, "rouge_l": 1}
    ids, target = got["ids"], results.target_ids.get(prompt["id"], [])
    n = min(len(ids), len(target))
    return {"agreement": agreement(ids[:n], target[:n]), "rouge_l": rouge_l(ids[:n], target[:n])} if n else \
        {"agreement": "", "rouge_l": ""}


def of_drey(args, drey, results, prompt, limit, round_, side):
    name, policy, words = side
    tokens = args.plain_tokens or args.tokens if policy in PLAIN else args.tokens
    row = row_of(args, name, prompt, limit, round_, tokens, policy not in PLAIN)
    if results.has(row):
        return
    trace, before = drey.path("trace.json"), energy.counters()
    try:
        got = write(args, drey, args.target, prompt, limit, tokens, [*words, "--trace", trace])
    except Stop as stop:
        results.failed(row, stop)
        return
    joules = energy.joules_between(before, energy.counters())
    speculation = got["speculation"]
    results.add({**got, **{k: speculation[k] for k in ("hidden_share", "differed", "lossy")},
                 **dict.fromkeys(waits.COLUMNS, ""), **waits.of_trace(trace), **likeness(got, prompt, results),
                 "joules": "" if joules is None else joules, **row, "tokens": got["generated_tokens"]})
    say(row, got)


def of_peer(args, drey, peer, results, prompt, limit, round_, draft):
    """llama-server's own timing of a text; draft: (side, options)."""
    side, options = draft
    tokens = args.peer_tokens if limit else args.peer_memory_tokens
    row = row_of(args, side, prompt, limit, round_, tokens, bool(options))
    if results.has(row):
        return
    request = drey.path("request.json")
    path, text = request_of(prompt)
    with open(request, "w") as f:
        json.dump({"path": path, "body": {
            "n_predict": tokens, "max_tokens": tokens, "temperature": 0, "ignore_eos": True,
            "cache_prompt": False, **text}}, f)
    command = ["env", f"LD_LIBRARY_PATH={peer.env['LD_LIBRARY_PATH']}", sys.executable,
               f"{HERE}/scripts/bench/server.py", request, f"{peer.folder}/llama-server", "-m",
               drey.model(args.target), "-t", peer.threads, "-tb", peer.threads, "-np", "1", "-c", "1024",
               "--no-warmup", *(MAPPED if limit else []), *options]
    try:
        out = limited(drey, limit, command, args.rate)
        if out is None:
            raise Stop("killed for its memory")
    except Stop as stop:
        print(f"{prompt['id']}, {limit} MiB, {side}: {str(stop)[-300:]}", file=sys.stderr)
        return
    t = json.loads(out)["timings"]
    accepted = t.get("draft_n_accepted", 0)
    passes = max(t["predicted_n"] - 1 - accepted, 1)
    got = {"tokens": t["predicted_n"], "tokens_per_s": t["predicted_per_second"], "head": "", "text": "",
           "tokens_per_pass": (t["predicted_n"] - 1) / passes, "passes": passes, "accepted": accepted,
           "drafted": t.get("draft_n", 0), "decode_s": t["predicted_ms"] / 1000,
           "first_token_s": t["prompt_ms"] / 1000}
    results.add({**got, **UNKNOWN, **row, "lossy": False})
    say(row, got)


def of_other(args, drey, results, prompt, limit, round_):
    """Another drey's `run` of the same prompt and model, in the same limit."""
    row = row_of(args, "other drey", prompt, limit, round_, args.tokens)
    if results.has(row):
        return
    other = Drey(args.other, drey.models, drey.threads, drey.folder)
    words = ["--special", "-p", prompt["prompt"]] if prompt["prompt"] else ["--chat", "-p", prompt["turn"]]
    words += ["-d", drey.model(args.draft), "--sidecar", args.other_sidecar or "none"]
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    got, _ = other.generate(drey.model(args.target), limit or whole, args.tokens, words, args.rate,
                            memory=None if limit else "unlimited")
    results.add({**got, **row, "tokens": got["generated_tokens"], "lossy": False, "head": "", "text": "",
                 **UNKNOWN})
    say(row, got)


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
    if args.show:
        return show(rows_of(args.results), args.over)
    results, sides = Results(args.results, COLUMNS), sides_of(args, drey)
    peer = peer_of(args.peer, args.threads, record)
    if peer and not peer.has("llama-server"):
        raise Stop(f"{args.peer} has no llama-server")
    prompts = read_prompts(args.prompts, args.per_group)
    theirs = {p["id"] for p in read_prompts(args.prompts, args.peer_prompts or args.per_group)}
    if not energy.counters():
        print(energy.ABSENT)
    for round_, prompt, limit in turns(args, prompts):
        for side in sides:
            of_drey(args, drey, results, prompt, limit, round_, side)
        if args.other:
            of_other(args, drey, results, prompt, limit, round_)
        for draft in peer_sides(args, drey, peer) if prompt["id"] in theirs else []:
            of_peer(args, drey, peer, results, prompt, limit, round_, draft)
    show(results.rows, args.over)
    return results.end()


# ---- Medians

def cases_of(rows):
    """{(target, draft, budget): rows}, those without a draft in each of their target and budget."""
    cases = {(r["target"], r["draft"], float(r["budget_mib"])): [] for r in rows if r["draft"] != "none"}
    drafted = {(t, b) for t, _, b in cases}
    for r in rows:
        if r["draft"] == "none" and (r["target"], float(r["budget_mib"])) not in drafted:
            cases[r["target"], "none", float(r["budget_mib"])] = []
    for (target, draft, budget), of in cases.items():
        of += [r for r in rows if r["target"] == target and float(r["budget_mib"]) == budget and
               r["draft"] in ("none", draft)]
    return cases


def known(rows, side, group, metric):
    """The median of a metric of a side over prompts and rounds that have it."""
    return median([float(r[metric]) for r in rows
                   if r["side"] == side and r["group"] == group and r.get(metric) not in (None, "")])


def show_waits(title, rows, groups):
    """Prints when tokens were there, and what became of verifications; of lossy sides how much of
    their text is the target's."""
    if not any(r.get("verified") for r in rows):
        return
    lines = []
    for side in dict.fromkeys(r["side"] for r in rows):
        for group in groups:
            of = [r for r in rows if r["side"] == side and r["group"] == group and r.get("verified")]
            n = sum(float(r["verified"]) for r in of)
            shares = [sum(float(r[k]) for r in of) / n if n else float("nan") for k in ("useless", "errors")]
            lossy = any(r["lossy"] == "yes" for r in of)
            like = [known(rows, side, group, k) if lossy else 1 for k in ("agreement", "rouge_l")]
            tokens = sum(float(r["tokens"]) for r in of if r.get("joules"))
            per_token = sum(float(r["joules"]) for r in of if r.get("joules")) / tokens if tokens else float("nan")
            if of:
                lines.append([side, group, *(figure(known(rows, side, group, f"token_{m}_s")) for m in waits.MILESTONES),
                              *map(figure, shares), figure(known(rows, side, group, "nodes_per_s")),
                              *map(figure, like), figure(per_token)])
    table(f"{title}: waits", ["side", "group", *(f"token {m}, s" for m in waits.MILESTONES), "useless, share",
                              "errors, share", "nodes per s", "agreement", "Rouge-L", "J per token"], lines)


def ratios(values, best, side, group):
    """Ratios of each prompt that both sides wrote, in tokens of the group."""
    of_best = values.get((best, group), {})
    return [of_best[p] / v for p, v in values.get((side, group), {}).items() if p in of_best and v]


def spread_of(ratios):
    """The median, and in brackets the least and the most."""
    return f"{figure(median(ratios))} ({figure(min(ratios))} to {figure(max(ratios))})" if ratios else "-"


def show_peers(title, speeds, groups, best):
    """Each prompt's tokens/s by both programs, and the ratio over the best of the peer's ways."""
    peers = [s for s in dict.fromkeys(side for side, _ in speeds) if s.startswith(PEERS)]
    lines = []
    for group in groups:
        of = [speeds.get((s, group), {}) for s in (best, *peers)]
        for p in of[0]:
            theirs = [v.get(p) for v in of[1:]]
            if any(theirs):
                most = max(v for v in theirs if v)
                lines.append([p, *(figure(v) for v in (of[0][p], *theirs)), figure(of[0][p] / most)])
    if lines:
        table(f"{title}: prompts, tokens/s", ["prompt", best, *peers, f"{best} over the best peer"], lines)
        print(f"\nmedian over the best peer: {figure(median([float(line[-1]) for line in lines]))}")


def show(rows, best="optimal"):
    """Prints of each prompt the median of its rounds, of each group the median of its prompts."""
    for (target, draft, budget), of in cases_of(rows).items():
        speeds, per_pass = medians(of, "tokens_per_s"), medians(of, "tokens_per_pass")
        groups = list(dict.fromkeys(r["group"] for r in of))
        lines = []
        for side in dict.fromkeys(r["side"] for r in of):
            line = [side + (" (lossy)" if any(r["side"] == side and r["lossy"] == "yes" for r in of) else "")]
            for group in groups:
                have = speeds.get((side, group), {})
                line += [figure(median(list(have.values()))), spread_of(ratios(speeds, best, side, group)),
                         figure(median(list(per_pass.get((side, group), {}).values()))),
                         figure(median(ratios(per_pass, best, side, group))), str(len(have))]
            lines.append(line)
        head = ["side"]
        for group in groups:
            head += [f"{group}: tokens/s", f"{best} over it", "tokens per pass", f"{best} over it", "prompts"]
        title = f"{target}, {f'{budget:g} MiB' if budget else 'in memory'}, draft {draft}"
        table(title, head, lines)
        show_peers(title, speeds, groups, best)
        show_waits(title, of, groups)
