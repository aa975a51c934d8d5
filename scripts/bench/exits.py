"""Early exits, what they are compared with, and an oracle over the same prompts, in turns.

T1, T2 and T3 are SpecEE's names: predictors that speculation feeds, the schedule over layers, and
exits of whole trees. Sides without "tree" write a token per pass, so that an exit ends the pass of
its token alone:

    off               no exits, no draft
    off-draft         a draft is asked, and nobody uses what it says
    watched           predictors are asked, and nobody leaves: no score exceeds this threshold
    fast-every-layer  --exit fast --without schedule (T1)
    fast              --exit fast (T1 + T2)
    exact             --exit exact
    fast-random       --exit fast --without predictors: scores at random
    tree, tree-fast, tree-exact  trees without exits and with them (T3)
    oracle            where tokens are decided: drey train exit of each group's prompts, judged by
                      the half of them that it holds out (two prompts of a group at least)

Predictors are those of --exit-file, or next to the target: drey train exit makes them. Every result
is a line of --results as soon as it is known. scripts/draw.py draws the results."""
import json

from record import figure, median, table
from sides import TARGET, Stop, chosen, run as run_command
from texts import Results, drafter_of, medians, path_of, read_prompts, rows_of, turns, write
import texts

COLUMNS = ("target draft side prompt group budget_mib round n_predict tokens n_layers tokens_per_s "
           "tokens_per_pass decode_s counted left layers compared agreed taken_back looks candidates refused "
           "look_s head_s skipped_bytes vain_bytes lossy by_layer text")
WAYS = {  # exit, without, threshold
    "off": (None, None, None), "off-draft": (None, None, None), "watched": ("fast", None, "1"),
    "fast-every-layer": ("fast", "schedule", None), "fast": ("fast", None, None),
    "exact": ("exact", None, None), "fast-random": ("fast", "predictors", None), "tree": (None, None, None),
    "tree-fast": ("fast", None, None), "tree-exact": ("exact", None, None), "oracle": (None, None, None)}


def add_arguments(p):
    texts.add_arguments(p, "0", TARGET, "as in training: a model, lookup or none (default the 0.5B)")
    p.add_argument("--exit-file", metavar="FILE", help="predictors (next to the model)")
    p.add_argument("--exit-threshold", metavar="X", help="(the file's)")
    p.add_argument("--sides", metavar="NAME,...", help="some of: " + ",".join(WAYS))


def needs_draft(side):
    return side == "off-draft" or side.startswith("tree")


def words_of(args, drey, side):
    way, without, threshold = WAYS[side]
    drafts = drafter_of(args.draft) != "none" and (way or needs_draft(side))
    words = ["-d", path_of(drey, args.draft), "--policy", "optimal" if side.startswith("tree") else "single"] \
        if drafts else ["-d", "none"]
    if way:
        threshold = threshold or args.exit_threshold
        words += ["--exit", way, *(["--without", without] if without else [])]
        words += ["--exit-file", args.exit_file] if args.exit_file else []
        words += ["--exit-threshold", threshold] if threshold else []
    return words


def row_of(args, side, prompt, budget, round_):
    return {**texts.row_of(args, side, prompt, budget, round_, args.tokens),
            "lossy": WAYS[side][0] == "fast" and side != "watched"}


def layers_of(at_layer):
    """Columns of so many tokens that left after 1, 2, ... layers."""
    return {"counted": sum(at_layer), "layers": sum(i * n for i, n in enumerate(at_layer, 1)),
            "by_layer": ";".join(f"{i}:{n:.6g}" for i, n in enumerate(at_layer, 1) if n)}


def exits_of(got):
    exits = got.get("exits")
    return {**exits, **layers_of(exits["at_layer"])} if exits else {"by_layer": ""}


def of_oracle(args, drey, results, prompts, budget):
    """Records of each group the shares of held-out tokens that are final for good after each
    layer."""
    for group in dict.fromkeys(p["group"] for p in prompts):
        row = row_of(args, "oracle", {"id": "held-out", "group": group}, budget, 0)
        lines = [p["line"] for p in prompts if p["group"] == group]
        if results.has(row):
            continue
        with open(drey.path("prompts"), "w") as f:
            f.writelines(line if line.endswith("\n") else line + "\n" for line in lines)
        memory = f"{budget}M" if budget else "unlimited"
        try:
            report = json.loads(run_command([
                drey.program, "train", "exit", "-m", drey.model(args.target), "-d", path_of(drey, args.draft),
                "--prompts", drey.path("prompts"), "-n", str(args.tokens), "-t", drey.threads, "--memory",
                memory, "-q", "-o", drey.path("oracle"), "--json", "-"]))
        except Stop as stop:
            results.failed(row, stop)
            continue
        final, n = [0] * report["layers"] + [1], report["held_out_positions"]
        for layer in report["by_layer"]:
            final[layer["layer"]] = layer["final_for_good"]
        final[report["layers"]] = 1
        at_layer = [round(n * max(final[i] - final[i - 1], 0)) for i in range(1, report["layers"] + 1)]
        results.add({**row, "tokens": n, "n_layers": report["layers"], **layers_of(at_layer), "text": ""})
        print(f"{group}, oracle: {report['oracle_layers']:.2f} of {report['layers']} layers", flush=True)


def run(args, drey, record):
    if args.show:
        return show(rows_of(args.results))
    kind = drafter_of(args.draft)
    sides = chosen(args.sides, WAYS, "side") if args.sides else [s for s in WAYS if kind != "none" or not needs_draft(s)]
    for side in sides:
        if needs_draft(side) and kind == "none":
            raise Stop(f"the side {side} needs a draft: name one with --draft")
    results, prompts = Results(args.results, COLUMNS), read_prompts(args.prompts, args.per_group)
    for round_, prompt, budget in turns(args, prompts):
        for side in sides:
            row = row_of(args, side, prompt, budget, round_)
            if side == "oracle" or results.has(row):
                continue
            try:
                got = write(args, drey, args.target, prompt, budget, args.tokens, words_of(args, drey, side))
            except Stop as stop:
                results.failed(row, stop)
                continue
            results.add({**got, **exits_of(got), **row, "tokens": got["generated_tokens"]})
            layers = got.get("exits", {}).get("layers_per_token")
            print(f"{row['prompt']}, {budget} MiB, {side}: {figure(got['tokens_per_s'])} tokens/s" +
                  (f", {layers:.2f} layers" if layers else ""), flush=True)
    if "oracle" in sides:
        for budget in dict.fromkeys(b for _, _, b in turns(args, prompts)):
            of_oracle(args, drey, results, prompts, budget)
    show(results.rows)
    return results.end()


def cases_of(rows):
    """{(target, draft, budget, group): rows}"""
    cases = {}
    for r in rows:
        cases.setdefault((r["target"], r["draft"], float(r["budget_mib"]), r["group"]), []).append(r)
    return cases


def figures_of(case):
    """{side: figures of its texts together}; None: not known."""
    all_of, speeds = {}, medians(case, "tokens_per_s")
    n_layers = max(float(r["n_layers"]) for r in case)
    for side in dict.fromkeys(r["side"] for r in case):
        own = [r for r in case if r["side"] == side]
        s = {k: sum(float(r[k]) for r in own) for k in
             "counted left layers compared agreed refused look_s head_s decode_s skipped_bytes vain_bytes".split()}
        of = {p: v for (name, _), prompts in speeds.items() if name == side for p, v in prompts.items() if v}
        off = {p: v for (name, _), prompts in speeds.items() if name == "off" for p, v in prompts.items() if v}

        def each(key, among="counted"):
            return s[key] / s[among] if s[among] else None

        all_of[side] = {
            "lossy": own[0]["lossy"] == "yes", "tokens_per_s": median(list(of.values())),
            "of_off": median([v / off[p] for p, v in of.items() if p in off]), "layers": each("layers"),
            "left": each("left"), "refused": each("refused"), "look": each("look_s", "decode_s"),
            "head": each("head_s", "decode_s"),
            "agree": 1 - (s["compared"] - s["agreed"]) / s["counted"] if s["compared"] else None,
            "unread": 1 - s["vain_bytes"] / s["skipped_bytes"] if s["skipped_bytes"] else None}
    oracle = (all_of.get("oracle") or {}).get("layers")
    for f in all_of.values():
        f["of_oracle"] = (n_layers - f["layers"]) / (n_layers - oracle) \
            if f["layers"] and oracle and oracle < n_layers else None
    return all_of


def show(rows):
    for (target, draft, budget, group), case in cases_of(rows).items():
        def put(value, digits, unit=""):
            return f"{100 * value if unit else value:.{digits}f}{unit}" if value else "-"

        lines = [[side + (" (lossy)" if f["lossy"] else ""), figure(f["tokens_per_s"]), figure(f["of_off"]),
                  put(f["layers"], 2), put(f["of_oracle"], 2), put(f["left"], 0, " %"),
                  put(f["agree"], 1, " %"), put(f["refused"], 2), put(f["look"], 1, " %"),
                  put(f["head"], 1, " %"), put(f["unread"], 0, " %")] for side, f in figures_of(case).items()]
        n_layers = max(int(r["n_layers"]) for r in case)
        table(f"{target}{f' of {n_layers} layers' if n_layers else ''}, "
              f"{f'{budget:g} MiB' if budget else 'in memory'}, draft {draft}, {group}",
              ["side", "tokens/s", "of off", "layers per token", "of the oracle", "left", "agree",
               "heads in vain", "looking", "heads", "unread"], lines)
