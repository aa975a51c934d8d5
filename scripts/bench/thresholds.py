"""The papers' thresholds, by counts: passes, nodes, what was drafted ahead and kept, how much of a
lossy text is the target's. No times: they may be counted on a busy machine. What is drafted ahead
and what `optimal` drafts follows times all the same, and differs from run to run.

Parts: `alpha` (EdgeLLM Fig. 12: alpha's first value and its factor), `ablation` (tree, provisional
drafting, fallback; in a budget, so that passes wait), `length` (passes up to the 64th, 128th and
256th token; give --tokens 256), `bld` (its two thresholds).

Every result is a line of --results as soon as it is known: what is there is not counted again."""
from record import figure, table
from sides import Stop, chosen
from texts import Results, path_of, read_prompts, rouge_l, row_of, rows_of, write
import texts
import waits

COLUMNS = ("target draft side prompt group budget_mib round n_predict tokens passes tokens_per_pass drafted accepted "
           "draft_steps alpha provisional_kept provisional_lost differed lossy rouge_l " +
           " ".join(f"pass_{n}" for n in waits.MILESTONES) + " run head text")
ALPHAS, FACTORS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3), (0.1, 0.3, 0.7, 0.9)
RULES = ("mean", "printed")
BLD = ((0.9, 2), (0.6, 1), (0.6, 2), (0.6, 5), (0.3, 5), (0.1, 5))
PARTS = {
    "alpha": [*(f"edgellm --fallback {r} --alpha {a}" for r in RULES for a in ALPHAS),
              *(f"edgellm --fallback {r} --fallback-step {f}" for r in RULES for f in FACTORS),
              "edgellm --without fallback", "llmcad"],
    "ablation": [f"edgellm{words} --ahead {a}" for a in (0.1, 0.001)
                 for words in ("", " --without tree", " --without fallback", " --without provisional")],
    "length": ["sequence", "specinfer", "llmcad", "edgellm", "edgellm --fallback printed", "optimal"],
    "bld": ["edgellm", *(f"bld --bld-fallback {f} --bld-rollback {r}" for f, r in BLD)],
}


def add_arguments(p):
    texts.add_arguments(p, "0", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf")
    p.add_argument("--parts", default="alpha,bld", metavar="PART,...", help=f"of {', '.join(PARTS)} (alpha,bld)")


def milestones_of(trace):
    """{pass_64: the number of passes after which the 64th token was there, ...}"""
    found, written = {}, 1  # the prompt's pass gave the first token
    turns = sorted(waits.events_of(trace).get("turn", []), key=lambda e: e["ts"])
    for i, e in enumerate(turns, 1):
        written += e["args"]["written"]
        for n in waits.MILESTONES:
            if written >= n:
                found.setdefault(f"pass_{n}", i)
    return found


def likeness(got, prompt, results):
    """Likeness to a text of this invocation that is not lossy."""
    if not got["speculation"]["lossy"]:
        results.target_ids.setdefault(prompt["id"], got["ids"])
        return 1
    return rouge_l(got["ids"], results.target_ids.get(prompt["id"], []))


def count(args, drey, results, prompt, budget, side):
    row, trace = row_of(args, side, prompt, budget, 0, args.tokens), drey.path("trace.json")
    if results.has(row):
        return
    policy, *words = side.split()
    try:
        got = write(args, drey, args.target, prompt, budget, args.tokens,
                    ["-d", path_of(drey, args.draft), "--policy", policy, *words, "--trace", trace])
    except Stop as stop:
        results.failed(row, stop)
        return
    of = ("draft_steps", "alpha", "provisional_kept", "provisional_lost", "differed", "lossy")
    results.add({**got, **{k: got["speculation"][k] for k in of}, "tokens": got["generated_tokens"],
                 "rouge_l": likeness(got, prompt, results),
                 **{f"pass_{n}": "" for n in waits.MILESTONES}, **milestones_of(trace), **row})
    print(f"{prompt['id']}, {side}: {got['passes']} passes, {got['drafted']} nodes", flush=True)


def total(rows, column):
    return sum(float(r[column] or 0) for r in rows)


def show(rows):
    """Sums over the prompts that all sides of a budget wrote."""
    for budget in dict.fromkeys(r["budget_mib"] for r in rows):
        sides = {}
        for r in rows:
            if r["budget_mib"] == budget:
                sides.setdefault((r["side"], r["n_predict"]), []).append(r)
        lines = []
        for (side, n), of in sides.items():
            passes = total(of, "passes")
            lines.append([side, n, str(len(of)), figure(passes), figure(total(of, "tokens") / passes),
                          figure(total(of, "drafted") / passes), figure(total(of, "draft_steps") / passes),
                          figure(total(of, "provisional_kept")),
                          figure(total(of, "provisional_lost")), figure(total(of, "rouge_l") / len(of)),
                          *(figure(total(of, f"pass_{m}")) if all(r[f"pass_{m}"] for r in of) else ""
                            for m in waits.MILESTONES)])
        table(f"{budget} MiB", ["side", "tokens", "texts", "passes", "tokens per pass", "nodes per pass", "steps per pass",
                                "ahead: kept", "lost", "Rouge-L", *(f"passes to token {m}" for m in waits.MILESTONES)],
              lines)


def run(args, drey, record):
    if args.show:
        show(rows_of(args.results))
        return 0
    args.budgets = args.budgets or "0"
    results = Results(args.results, COLUMNS)
    sides = [side for part in chosen(args.parts, tuple(PARTS), "part") for side in PARTS[part]]
    for _, prompt, budget in texts.turns(args, read_prompts(args.prompts, args.per_group)):
        for side in sides:
            count(args, drey, results, prompt, budget, side)
    show(results.rows)
    return results.end()
