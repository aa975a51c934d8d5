"""Measures what packing costs a streamed pass: without a sidecar over with one.

Each turn is a run in its own memory cgroup with a cold page cache (root), --memory the limit
over 1.05: without a draft (passes of one row) and with one (passes over trees), the text the same
with and without a sidecar. A ratio of 1 says that packing is hidden by the reads. Passes are timed
by the run's statistics: decoding over passes, and what of it verification took. The sidecar (as
large as the model) is written next to the model, so that both are on one disk, and removed at the
end."""
import os

from record import figure, spread, table
from sides import DRAFT, QUESTION, WIDE, Stop, run as run_command


def add_arguments(p):
    p.add_argument("--file", metavar="FILE", default=WIDE, help="the model (default wide6b)")
    p.add_argument("--draft", metavar="FILE", default=DRAFT, help="its draft; none: only without")
    p.add_argument("--limits", metavar="MIB,MIB", default=[2560],
                   type=lambda s: [int(v) for v in s.split(",")], help="memory (default 2560)")
    p.add_argument("--tokens", type=int, default=16, help="without a draft (default 16)")
    p.add_argument("--draft-tokens", type=int, default=128, help="with a draft (default 128)")
    p.add_argument("--rounds", type=int, default=5, help="turns of each side (default 5)")
    p.add_argument("--sidecar", metavar="FILE", help="one that drey prepare wrote, which is kept")


def run(args, drey, record):
    model = drey.model(args.file)
    sidecar = args.sidecar or f"{model}.bench-{os.getpid()}"
    if not args.sidecar:
        run_command([drey.program, "prepare", "-q", model, "-o", sidecar])
    try:
        rows = []
        for limit in args.limits:
            rows.append(measure(args, drey, record, model, sidecar, limit, ()))
            if args.draft != "none":
                rows.append(measure(args, drey, record, model, sidecar, limit,
                                    ("-d", drey.model(args.draft))))
    finally:
        if not args.sidecar:
            os.unlink(sidecar)
    table("A streamed pass without a sidecar over with one", [
        "limit, MiB", "draft", "MB per pass", "disk, MB/s", "pass without, ms", "with, ms", "ratio",
        "of verification alone"], rows)


def measure(args, drey, record, model, sidecar, limit, draft):
    case, texts = f"packing-{limit}{'-draft' if draft else ''}", set()
    tokens = args.draft_tokens if draft else args.tokens
    for i in range(args.rounds):
        print(f"{case}: round {i + 1} of {args.rounds}", flush=True)
        record.note(case, "reader", i, bytes_per_s=drey.reader(model, limit))
        for side in ("none", "sidecar") if i % 2 == 0 else ("sidecar", "none"):
            words = ["--sidecar", sidecar if side == "sidecar" else "none", "-p", QUESTION, *draft]
            got, text = drey.generate(model, limit, tokens, words)
            if got["sidecar"] != (side == "sidecar") or not got["streamed_bytes_per_pass"]:
                raise Stop(f"{case}: nothing is streamed, or the sidecar was not used")
            texts.add(text)
            record.note(case, side, i, **got, pass_s=got["decode_s"] / got["passes"],
                        verify_pass_s=got["verify_share"] * got["decode_s"] / got["passes"])
    if len(texts) > 1:
        raise Stop(f"{case}: the texts with and without a sidecar differ")
    without, with_one = ("none", "sidecar")
    return [str(limit), "yes" if draft else "no",
            figure(record.median(case, without, "streamed_bytes_per_pass") / 1e6),
            figure(record.median(case, "reader", "bytes_per_s") / 1e6),
            figure(1e3 * record.median(case, without, "pass_s")),
            figure(1e3 * record.median(case, with_one, "pass_s")),
            spread(record.ratios(case, "pass_s", with_one, without)),
            spread(record.ratios(case, "verify_pass_s", with_one, without))]
