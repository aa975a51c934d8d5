"""drey against another commit of itself, in memory: decoding, prefill, passes and t(n), in turns.

OTHER is a commit, which is built in its own worktree and removed at the end, or the path of a
drey that is built already. Ratios are above 1 where this one is faster. The sides swap places every
round (A B B A), so that a machine that warms up favours neither."""
import os

from record import SPEEDS, WIDTHS, case_of, figure, less_is_better, spread, table
from sides import HERE, TARGET, Drey, Stop, run as run_command


def add_arguments(p):
    p.add_argument("other", metavar="OTHER", help="a commit, or the path of a drey")
    p.add_argument("--files", metavar="FILE,FILE", type=lambda s: s.split(","), default=[TARGET],
                   help="the models (default target)")
    p.add_argument("--prompt-tokens", type=int, default=512, help="of prefill (default 512)")
    p.add_argument("--decode-tokens", type=int, default=128, help="of decoding (default 128)")
    p.add_argument("--rounds", type=int, default=5, help="turns of each side (default 5)")


def build(commit, tree):
    """A drey of that commit."""
    run_command(["git", "-C", HERE, "worktree", "add", "--detach", tree, commit])
    run_command([f"{tree}/scripts/build.sh", f"{tree}/build"])
    return f"{tree}/build/cli/drey"


def run(args, drey, record):
    tree = drey.path("tree")
    try:
        built = os.path.isfile(args.other)
        program = args.other if built else build(args.other, tree)
        other = Drey(program, drey.models, args.threads, drey.folder)
        record.about("other", version=other.version())
        for name in args.files:
            compare(args, drey, other, record, drey.model(name))
    finally:
        if os.path.exists(tree):
            run_command(["git", "-C", HERE, "worktree", "remove", "--force", tree])


def compare(args, drey, other, record, model):
    case = case_of(model)
    for i in range(args.rounds):
        print(f"{case}: round {i + 1} of {args.rounds}", flush=True)
        for side, program in (("drey", drey), ("other", other))[::1 if i % 2 == 0 else -1]:
            got = program.bench_model(model, prompt=args.prompt_tokens, decode=args.decode_tokens)
            if got["streamed_bytes_per_pass"]:
                raise Stop(f"{case} is streamed: this machine's memory does not hold it")
            record.note(case, side, i, **got)
    show(record, case)


def show(record, case):
    rows = []
    for metric, title, unit in SPEEDS + [(f"t_{n}", f"t({n})/t(1)", 1) for n in WIDTHS[1:]]:
        sides = [figure(unit * record.median(case, s, metric)) for s in ("drey", "other")]
        rows.append([title, *sides, spread(record.ratios(case, metric, "drey", "other"), 3),
                     figure(best(record, case, metric))])
    table("Against the other", [case, "this", "the other", "ratio", "of the best rounds"], rows)


def best(record, case, metric):
    """The ratio of the best rounds of both sides: what a machine that other work slows down allows
    to say about the code alone."""
    pick = min if less_is_better(metric) else max
    ours, theirs = (pick(record.of(case, s, metric).values(), default=float("nan"))
                    for s in ("drey", "other"))
    return theirs / ours if less_is_better(metric) else ours / theirs
