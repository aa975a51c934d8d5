"""Measures what dividing passes between units is worth: passes as drey tune measures them, texts.

drey tune -m --units finds the shares; its table is of passes of 1, 4, 16 and 64 rows, and of
attention. The texts of --prompts are written by each side in turns; shares are said in the words of
--units:

    sequential   a token per pass, without a draft, on the fastest unit
    one unit     with the draft, on the fastest unit
    even         equal parts, and nobody takes over: as tensor parallelism has it
    alone ratio  in proportion to the units' speeds alone at 16 rows, and nobody takes over (EdgeNN)
    static       as searched for 16 rows while all are at work, and nobody takes over
    dynamic      as drey tune found for every width, and who is done takes over

Results are those of the subcommand edge."""
import json
import os

from edge import COLUMNS, of_drey, show
from record import figure, table
from sides import TARGET, Stop, run as run_command
from texts import Results, path_of, read_prompts, rows_of, turns
import texts

ROWS = 16  # whose shares the sides have that are given theirs in words


def add_arguments(p):
    texts.add_arguments(p, "0", TARGET)
    p.add_argument("--units", required=True, help="who computes, without shares: cpu+cpu/slow=4")
    p.add_argument("--context", metavar="N", help="most positions that attention is divided after (4096)")


def with_shares(units, shares):
    """The words, each unit with its share, and nobody taking over."""
    words = []
    for unit, share in zip(units.split("+"), shares):
        name, slash, rest = unit.partition("/")
        words.append(f"{name}={share:.4f}{slash}{rest}")
    return "+".join([*words, "static"])


def tune(args, drey):
    """Returns what drey tune -m says of the division; it is kept for the texts, but not in the
    user's cache."""
    os.environ["XDG_CACHE_HOME"] = drey.folder
    words = ["-c", args.context] if args.context else []
    return json.loads(run_command([
        drey.program, "tune", "-m", drey.model(args.target), "-d", "none", "-t", drey.threads, "--units",
        args.units, "-q", "--json", "-", *words]))["division"]


def sides_of(args, drey, division):
    width = next((w for w in division["widths"] if w["rows"] == ROWS), division["widths"][-1])
    alone, n = width["alone_s"], len(width["alone_s"])
    fastest = [float(s == min(alone)) for s in alone]
    divisions = {"sequential": fastest, "one unit": fastest, "even": [1 / n] * n,
                 "alone ratio": [1 / s / sum(1 / a for a in alone) for s in alone], "static": width["share"]}
    sides = []
    for name, shares in [*divisions.items(), ("dynamic", None)]:
        draft = ["-d", "none"] if name == "sequential" else ["-d", path_of(drey, args.draft)]
        units = with_shares(args.units, shares) if shares else args.units
        sides.append((name, "spl" if name == "sequential" else "optimal", [*draft, "--units", units]))
    return sides


def show_division(division):
    def ms(seconds):
        return figure(1e3 * seconds)

    names = division["names"]
    rows = []
    for w in division["widths"]:
        of = {s["side"]: s["pass_s"] for s in w["sides"]}
        both = 1 / sum(1 / s for s in w["alone_s"])
        rows.append([str(w["rows"]), *(ms(s) for s in w["alone_s"]), ms(of["static"]), ms(of["dynamic"]),
                     ":".join(f"{100 * s:.0f}" for s in w["share"]), f"{both / of['static']:.2f}"])
    table("Passes, ms", ["rows", *(f"{n} alone" for n in names), "static", "dynamic", "shares",
                         "static, of all alone"], rows)
    rows = [[str(c["positions"]), *(ms(s["attention_s"]) for s in c["sides"]), f"{c['boundary']:+.2f}"]
            for c in division["attention"]]
    if rows:
        table("Attention, ms", ["after positions", *(s["side"] for s in division["attention"][0]["sides"]),
                                "boundary"], rows)


def run(args, drey, record):
    if args.show:
        return show(rows_of(args.results), "dynamic")
    args.plain_tokens = args.tokens
    if any("=" in unit.split("/")[0] for unit in args.units.split("+")) or "static" in args.units.split("+"):
        raise Stop("leave shares and static out of --units: they are what is measured")
    results, prompts = Results(args.results, COLUMNS), read_prompts(args.prompts, args.per_group)
    division = tune(args, drey)
    show_division(division)
    for round_, prompt, budget in turns(args, prompts):
        for side in sides_of(args, drey, division):
            of_drey(args, drey, results, prompt, budget, round_, side)
    show(results.rows, "dynamic")
    return results.end()
