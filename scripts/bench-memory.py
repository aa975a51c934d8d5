#!/usr/bin/env python3
"""Holds drey to its memory budget: every case is run with budgets from the smallest that works to the whole file, each in a memory
cgroup of 1.05 and in one of 2 times the budget, without swap, with a cold page cache. Needs root; cgroup v1 or v2.

    bench-memory.py DREY [--models DIR] [--steps N] [--tokens N] [--cases "NAME;..."] [--markdown FILE]

For each budget it prints what the kernel charged at most (page cache, stacks and the kernel's own structures included), over the budget,
and how often the limit was hit, processes killed, and pages read back while decoding. Exit status 1 if any charge exceeds its budget or
any of the counts is not 0. The texts of a case have to be the same at every budget."""
import argparse, json, os, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SMOL = "SmolLM2-135M-Instruct.Q4_1.gguf"
TARGET, DRAFT = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
MIB = 1 << 20
# Longer than the widest prompt pass, and with the text it fills the context: what is planned for is used.
PROMPT = "The three most important things about squirrels are these. " * 32
# name: model, draft, further options; "sidecar": with one that drey prepare writes
CASES = {
    "smol": (SMOL, None, []),
    "smol, sidecar": (SMOL, None, ["sidecar"]),
    "smol, reading threads": (SMOL, None, ["--io", "pread"]),
    "smol, page cache": (SMOL, None, ["--io", "buffered"]),
    "smol, lookup": (SMOL, "ngram", []),
    "target and draft": (TARGET, DRAFT, []),
    "target and draft, sidecar": (TARGET, DRAFT, ["sidecar"]),
    "target and draft, page cache": (TARGET, DRAFT, ["--io", "buffered"]),
}


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder, self.failed = args, folder, False
        self.sidecars = {}

    def path(self, name):
        return os.path.join(self.folder, name)

    def sidecar(self, model):
        if model not in self.sidecars:
            out = self.path(f"sidecar{len(self.sidecars)}")
            subprocess.run([self.args.drey, "prepare", "-q", model, "-o", out], check=True)
            self.sidecars[model] = out
        return self.sidecars[model]

    def options(self, case):
        model, draft, extra = CASES[case]
        model = os.path.join(self.args.models, model)
        words = ["-m", model, "-t", "2", "-c", str(self.args.context)]
        if draft:
            words += ["-d", draft if draft == "ngram" else os.path.join(self.args.models, draft)]
        words += ["--sidecar", self.sidecar(model)] if "sidecar" in extra else ["--sidecar", "none"]
        return words + [w for w in extra if w != "sidecar"]

    def plan(self, words, memory):
        out = subprocess.run([self.args.drey, "plan", *words, "--memory", memory, "--no-measure", "--json", "-"],
                             check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return json.loads(out.stdout)

    def run(self, words, budget, limit):
        """One run; what was charged and what went wrong."""
        report, stats = self.path("report"), self.path("stats")
        for old in (report, stats):
            if os.path.exists(old):
                os.unlink(old)
        done = subprocess.run(
            [sys.executable, f"{HERE}/memlimit.py", str(limit), "--timeout", "300", "--json", report, "--",
             self.args.drey, "run", *words, "--memory", f"{budget}M", "-n", str(self.args.tokens), "--ignore-eos",
             "-q", "--stats", stats, "-p", PROMPT],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode or not os.path.exists(stats):
            return None, None, done.stderr.decode(errors="replace").strip().splitlines()[-2:]
        with open(report) as a, open(stats) as b:
            return {**json.load(a), **json.load(b)}, done.stdout, None

    def budget(self, case, words, budget, first, texts, rows):
        row = [case, str(budget)]
        for n, limit in enumerate((budget * 105 // 100, budget * 2)):
            got, text, fault = self.run(words, budget, limit)
            if fault is not None:
                print(f"bench-memory: {case}: {budget} MiB in {limit} MiB: {fault}", file=sys.stderr)
                self.failed = True
                row += ["-", "-"]
                continue
            texts.add(text)
            counts = [got["limit_hits"], got["oom_kills"], got["decode_major_faults"]]
            share = got["peak_mib"] / budget
            if share > 1 or any(counts):
                self.failed = True
            if got["streamed_bytes_per_pass"] == 0 and first:
                self.failed = True
                print(f"bench-memory: {case}: nothing is streamed at {budget} MiB: that is no test", file=sys.stderr)
            if n == 0:
                row.append(f"{got['streamed_bytes_per_pass'] / MIB:.0f}")
            row += [f"{got['peak_mib']:.1f} ({share:.3f})", ", ".join(map(str, counts))]
        rows.append(row)
        print("| " + " | ".join(row) + " |", flush=True)

    def case(self, case, rows):
        words, texts = self.options(case), set()
        least = self.plan(words, "unlimited")
        parts = "pinned draft ring target_kv draft_kv work program tokenizer stack queue reserve".split()
        whole = sum(least[p + "_bytes"] for p in parts) // MIB + 2
        least, steps = least["smallest_budget_bytes"] // MIB, max(self.args.steps, 1)
        for i in range(steps):
            self.budget(case, words, least + (whole - least) * i // max(steps - 1, 1), i == 0, texts, rows)
        if len(texts) > 1:
            self.failed = True
            print(f"bench-memory: {case}: {len(texts)} texts at different budgets", file=sys.stderr)


def main():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("drey")
    p.add_argument("--models", default=os.environ.get("DREY_MODELS") or f"{home}/drey/models")
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--tokens", type=int, default=24)
    p.add_argument("--context", type=int, default=384)
    p.add_argument("--cases", default=None)
    p.add_argument("--markdown")
    args = p.parse_args()
    names = args.cases.split(";") if args.cases else list(CASES)
    unknown = [n for n in names if n not in CASES]
    if unknown:
        p.error(f"no case {unknown[0]!r}; there are: " + "; ".join(CASES))
    head = ["case", "budget, MiB", "streamed, MiB", "charged in 1.05 x", "hits, kills, faults", "charged in 2 x",
            "hits, kills, faults"]
    head = "| " + " | ".join(head) + " |\n|" + "---|" * len(head)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, folder)
        print(head)
        for name in names:
            files = [f for f in CASES[name][:2] if f and f.endswith(".gguf")]
            missing = [f for f in files if not os.path.exists(os.path.join(args.models, f))]
            if missing:
                print(f"bench-memory: not run: {name}: no {missing[0]} in {args.models}", file=sys.stderr)
                continue
            bench.case(name, rows)
    if args.markdown:
        with open(args.markdown, "w") as f:
            f.write(head + "\n" + "".join("| " + " | ".join(r) + " |\n" for r in rows))
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
