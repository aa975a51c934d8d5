"""Checks whether drey stays within its budget, whatever the budget is.

Every case is run with budgets from the smallest that works to the whole file, each in a memory
cgroup of 1.05 and in one of 2 times the budget, without swap, with a cold page cache (root). For
each it prints what the kernel charged at most (page cache, stacks and the kernel's own structures
included), over the budget, and how often the limit was hit, processes killed, and pages read back
while decoding. Exit status 1 if any charge exceeds its budget or any of the counts is not 0. The
texts of a case have to be the same at every budget.

scripts/experts_gguf.py makes the mixtures: smol-experts.gguf of the small model with --experts 32
--used 4, 1.5b-experts.gguf of the target with its usual numbers."""
import contextlib
import json
import os
import signal
import subprocess
import sys

from sides import DRAFT, MIB, SMOL, SQUIRRELS, TARGET, Stop, chosen, run as run_command

MIXTURE, LARGE_MIXTURE = "smol-experts.gguf", "1.5b-experts.gguf"
SQUIRREL_TOKENS = 11
# name: model, draft, further options; "sidecar": with one that drey prepare writes
CASES = {
    "smol": (SMOL, None, []),
    "smol, sidecar": (SMOL, None, ["sidecar"]),
    "smol, reading threads": (SMOL, None, ["--io", "pread"]),
    "smol, page cache": (SMOL, None, ["--io", "buffered"]),
    "smol, lookup": (SMOL, "lookup", []),
    "target and draft": (TARGET, DRAFT, []),
    "target and draft, sidecar": (TARGET, DRAFT, ["sidecar"]),
    "target and draft, page cache": (TARGET, DRAFT, ["--io", "buffered"]),
    "mixture": (MIXTURE, None, []),
    "mixture, sidecar": (MIXTURE, None, ["sidecar"]),
    "mixture, page cache": (MIXTURE, None, ["--io", "buffered"]),
    "mixture and draft": (MIXTURE, SMOL, []),
    "large mixture": (LARGE_MIXTURE, None, []),
    "large mixture, sidecar": (LARGE_MIXTURE, None, ["sidecar"]),
    "large mixture and draft": (LARGE_MIXTURE, DRAFT, []),
}
HEAD = ("case", "budget, MiB", "streamed, MiB", "charged in 1.05 x", "hits, kills, faults",
        "charged in 2 x", "hits, kills, faults")
WHOLE = "pinned expert draft ring target_kv draft_kv work program tokenizer stack queue reserve".split()


def add_arguments(p):
    p.add_argument("--steps", type=int, default=10, help="budgets per case (default 10)")
    p.add_argument("--tokens", type=int, default=24, help="written in each run (default 24)")
    # Longer than the widest prompt pass, and with the text it fills the context: what is planned
    # for is used.
    p.add_argument("--prompt-tokens", type=int, default=352, help="about (default 352)")
    p.add_argument("--context", type=int, default=384, help="positions (default 384)")
    p.add_argument("--load", action="store_true",
                   help="meanwhile every processor is busy, and the model's file is read again and "
                   "again through the page cache, outside of the limit")
    p.add_argument("--cases", metavar="NAME;NAME", default=";".join(CASES),
                   help="some of: " + "; ".join(CASES))
    p.add_argument("--markdown", metavar="FILE", help="the table once more")


def run(args, drey, record):
    names = chosen(args.cases, CASES, "case", ";")
    head = "| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD)
    print(head)
    bench = Budget(args, drey, record)
    for name in names:
        files = [f for f in CASES[name][:2] if f and f.endswith(".gguf")]
        missing = [f for f in files if not os.path.exists(os.path.join(drey.models, f))]
        if missing:
            print(f"bench budget: not run: {name}: no {missing[0]} in {drey.models}", file=sys.stderr)
            continue
        bench.case(name)
    if args.markdown:
        with open(args.markdown, "w") as f:
            f.write(head + "\n" + "".join(row + "\n" for row in bench.rows))
    return 1 if bench.failed else 0


@contextlib.contextmanager
def load(path):
    """Processes that want every processor and the page cache."""
    spin = [sys.executable, "-c", "while True: pass"]
    read = ["sh", "-c", 'while :; do cat "$1" >/dev/null; done', "sh", path]
    busy = [subprocess.Popen(words, start_new_session=True)
            for words in [spin] * len(os.sched_getaffinity(0)) + [read]]
    try:
        yield
    finally:
        for process in busy:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Budget:
    def __init__(self, args, drey, record):
        self.args, self.drey, self.record = args, drey, record
        self.prompt = SQUIRRELS * max(args.prompt_tokens // SQUIRREL_TOKENS, 1)
        self.failed, self.rows, self.sidecars = False, [], {}

    def fault(self, what):
        print("bench budget:", what, file=sys.stderr)
        self.failed = True

    def sidecar(self, model):
        if model not in self.sidecars:
            out = self.drey.path(f"sidecar{len(self.sidecars)}")
            run_command([self.drey.program, "prepare", "-q", model, "-o", out])
            self.sidecars[model] = out
        return self.sidecars[model]

    def options(self, case):
        model, draft, more = CASES[case]
        model = self.drey.model(model)
        words = ["--sidecar", self.sidecar(model) if "sidecar" in more else "none"]
        by_name = draft in (None, "lookup")
        words += ["-d", (draft or "none") if by_name else self.drey.model(draft)]
        return model, words + [w for w in more if w != "sidecar"]

    def smallest_and_whole(self, model, words):
        """Returns in MiB the least budget that works, and one that holds everything."""
        plan = json.loads(run_command([
            self.drey.program, "plan", "-m", model, "-t", self.drey.threads, "-c",
            str(self.args.context), *words, "--memory", "unlimited", "--no-measure", "--json", "-"]))
        whole = sum(plan[part + "_bytes"] for part in WHOLE)
        return plan["smallest_budget_bytes"] // MIB, whole // MIB + 2

    def case(self, case):
        model, words = self.options(case)
        least, whole = self.smallest_and_whole(model, words)
        texts, steps = set(), max(self.args.steps, 1)
        with load(model) if self.args.load else contextlib.nullcontext():
            for i in range(steps):
                budget = least + (whole - least) * i // max(steps - 1, 1)
                self.budget(case, model, words, budget, i == 0, texts)
        if len(texts) > 1:
            self.fault(f"{case}: {len(texts)} texts at different budgets")

    def budget(self, case, model, words, budget, first, texts):
        row = [case, str(budget)]
        for limit in (budget * 105 // 100, budget * 2):
            try:
                got, text = self.drey.generate(
                    model, limit, self.args.tokens, [*words, "-p", self.prompt],
                    context=self.args.context, memory=f"{budget}M")
            except Stop as stop:
                self.fault(f"{case}: {budget} MiB in {limit} MiB: {stop}")
                row += ["-", "-"] if len(row) > 2 else ["-", "-", "-"]
                continue
            texts.add(text)
            self.record.note(case, f"in-{limit}", budget, **got)
            counts = [got["limit_hits"], got["oom_kills"], got["decode_major_faults"]]
            self.failed |= got["peak_mib"] > budget or any(counts)
            streamed = got["streamed_bytes_per_pass"]
            if not streamed and first:
                self.fault(f"{case}: nothing is streamed at {budget} MiB: that is no test")
            row += [f"{streamed / MIB:.0f}"] if len(row) == 2 else []
            row += [f"{got['peak_mib']:.1f} ({got['peak_mib'] / budget:.3f})",
                    ", ".join(map(str, counts))]
        self.rows.append("| " + " | ".join(row) + " |")
        print(self.rows[-1], flush=True)
