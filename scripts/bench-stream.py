#!/usr/bin/env python3
"""Measures streaming against its ceilings: what drey makes of a disk while a model larger than the memory limit writes text.

    bench-stream.py DREY [--peer LLAMA_CPP_BIN_DIR] [--parts pass,first,prompt,memory,reader] [--models DIR] [--limits MIB,MIB]
                    [--rates none,MB_S,...] [--pairs N] [--csv FILE]

    pass    wide6b without a draft in each memory limit and at each throttled rate: tokens/s over the ceiling (1 over the longer of a
            pass's reads at the speed of a plain reader, and its computing in memory), reader and drey taking turns; with --peer also
            llama.cpp, which maps the same file in the same limit (with the settings that need least memory), and the ratio of the
            bytes that both read for a token
    first   the first token after the start with a cold cache, over reading every needed byte of the file once
    prompt  500 tokens of prompt: the passes of reads they take, and the time over the longer of reads and computing
    memory  decoding with a budget above the file against decoding without any budget
    reader  `drey bench disk` against fio, throttled

Every run is in a memory cgroup of its own without swap, with a cold page cache (memlimit.py; needs root), --memory is the limit / 1.05.
Prints tables in Markdown with the median of the turns and, in brackets, each turn; the CSV file holds every value."""
import argparse, csv, json, os, platform, re, statistics, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
WIDE, TARGET = "wide6b.gguf", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
PROMPT = "Write a C function that reverses a singly linked list in place, and explain it in a few sentences."
PARTS = ["reader", "pass", "first", "prompt", "memory"]
MIB = 1 << 20


def median(values):
    return statistics.median(values) if values else float("nan")


def turns(values, digits=3):
    return f"{median(values):.{digits}f} (" + " ".join(f"{v:.{digits}f}" for v in values) + ")"


def table(title, head, rows):
    print(f"\n{title}\n\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    sys.stdout.flush()


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder, self.values = args, folder, []

    def path(self, name):
        return os.path.join(self.folder, name)

    def note(self, case, side, turn, **values):
        self.values += [(case, side, turn, k, v) for k, v in values.items()]

    def limited(self, limit, rate, command, env=None, may_die=False):
        """Runs a command in a cgroup; memlimit.py's report, standard output and error."""
        report = self.path("report")
        words = [sys.executable, f"{HERE}/memlimit.py", str(limit), "--timeout", "1800", "--json", report, "--disk-of", self.args.models]
        words += ["--read-mb-s", str(rate)] if rate else []
        done = subprocess.run([*words, "--", *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=env)
        with open(report) as f:
            told = json.load(f)
        if done.returncode and not (may_die and told["oom_kills"]):
            raise SystemExit("bench-stream: failed: " + " ".join(command) + "\n" + done.stderr.decode(errors="replace")[-2000:])
        return told, done.stdout, done.stderr.decode(errors="replace")

    def drey(self, model, limit, rate, tokens, *more, prompt=PROMPT):
        """One run without a draft; its statistics and what its cgroup saw."""
        stats = self.path("stats")
        budget = ["--memory", str(limit * MIB * 100 // 105)] if "--memory" not in more else []
        report, _, _ = self.limited(limit, rate, [
            self.args.drey, "run", "-m", model, *budget, "-t", "2", "-c", "1024", "-n", str(tokens), "--ignore-eos", "-q", "--sidecar",
            "none", "--stats", stats, "-p", prompt, *more])
        with open(stats) as f:
            got = {**json.load(f), **report}
        if got["limit_hits"] or got["oom_kills"] or got["decode_major_faults"]:
            print(f"bench-stream: limit hit, kill or major fault: {report}", file=sys.stderr)
        return got

    def reader(self, model, limit, rate):
        """Bytes a second of a plain reader of the model's tensors."""
        out = self.limited(limit, rate, [self.args.drey, "bench", "disk", "-m", model, "--seconds", "10" if rate else "3", "--json", "-"])
        return json.loads(out[1])["bytes_per_s"]

    def fio(self, model, limit, rate):
        out = self.limited(limit, rate, [
            "fio", "--name=read", f"--filename={model}", "--readonly", "--direct=1", "--ioengine=io_uring", "--iodepth=16", "--rw=read",
            "--bs=1M", f"--runtime={10 if rate else 3}", "--time_based", "--output-format=json"])
        return json.loads(out[1][out[1].index(b"{"):])["jobs"][0]["read"]["bw_bytes"]

    def llama(self, model, limit, rate, tokens):
        """llama.cpp, mmap: tokens/s of decoding and all bytes read; None: killed for its memory."""
        peer = self.args.peer
        env = {**os.environ, "LD_LIBRARY_PATH": peer}
        report, _, err = self.limited(limit, rate, [
            f"{peer}/llama-completion", "-m", model, "-t", "2", "-c", "512", "-p", PROMPT, "-n", str(tokens), "--temp", "0", "--ignore-eos",
            "-no-cnv", "--no-warmup", "--no-display-prompt", "--perf", "--load-mode", "mmap",
            "--no-repack", "-ub", "64"], env, may_die=True)
        if report["oom_kills"]:
            return None
        ms, runs = map(float, re.findall(r"[^t] eval time = *([0-9.]+) ms / *([0-9]+) runs", err)[-1])
        return {"tokens_per_s": 1000 * runs / ms if ms else 0, "read_mb": report["read_mb"], "peak_mib": report["peak_mib"],
                "limit_hits": report["limit_hits"]}

    def compute_s(self, model, n_prompt=16):
        """Seconds of a pass of one row, and of a row of a prompt, in memory."""
        out = self.path("model")
        subprocess.run([self.args.drey, "bench", "model", "-m", model, "-t", "2", "--prompt-tokens", str(n_prompt), "--decode-tokens", "16",
                        "--contexts", "0", "--memory", "unlimited", "--sidecar", "none", "--json", out], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(out) as f:
            got = json.load(f)
        return 1 / got["decode_tokens_per_s"], 1 / got["prefill_tokens_per_s"]

    # ---- Parts

    def part_pass(self):
        model, rows = self.path_of(WIDE), []
        compute, _ = self.compute_s(model)
        print(f"\nA pass of one row in memory: {1000 * compute:.0f} ms.", flush=True)
        for limit in self.args.limits:
            for rate in self.args.rates:
                rows.append(self.passes(model, limit, rate, compute))
                print("bench-stream:", rows[-1], file=sys.stderr, flush=True)
        table("wide6b without a draft", ["limit, MiB", "disk, MB/s", "MB a pass", "ceiling, tokens/s", "drey", "over ceiling", "charged, MiB",
                                         "llama.cpp, mmap", "drey / llama.cpp", "bytes a token, llama.cpp / drey", "ratio of the ratios"], rows)

    def passes(self, model, limit, rate, compute):
        n_pairs = self.args.pairs if not rate else 2
        tokens = 4 if rate and rate <= 100 else 8 if rate and rate <= 300 else 12
        case, ceilings, speeds, shares, peak = f"pass-{limit}-{rate or 'none'}", [], [], [], 0
        for i in range(n_pairs):
            disk = self.reader(model, limit, rate)
            got = self.drey(model, limit, rate, tokens)
            streamed = got["streamed_bytes_per_pass"]
            ceilings.append(1 / max(streamed / disk, compute))
            speeds.append(got["tokens_per_s"])
            shares.append(speeds[-1] / ceilings[-1])
            peak = max(peak, got["peak_mib"])
            self.note(case, "reader", i, bytes_per_s=disk)
            self.note(case, "drey", i, **{k: v for k, v in got.items() if isinstance(v, (int, float))})
        row = [str(limit), str(rate or "not throttled"), f"{streamed / 1e6:.0f}", f"{median(ceilings):.3f}", f"{median(speeds):.3f}", turns(shares),
               f"{peak:.0f}"]
        return row + (self.against(model, limit, rate, case, median(speeds), streamed) if self.args.peer else ["-"] * 4)

    def against(self, model, limit, rate, case, speed, streamed):
        rates, read_mb, tokens = [], [], 4 if rate else 8
        for i in range(1 if rate else 3):
            first = self.llama(model, limit, rate, 1)
            more = self.llama(model, limit, rate, 1 + tokens) if first else None
            if more is None:
                return ["killed", "-", "-", "-"]
            self.note(case, "llama.cpp", i, read_mb_of_one=first["read_mb"], **more)
            rates.append(more["tokens_per_s"])
            read_mb.append((more["read_mb"] - first["read_mb"]) / tokens)
        ratio, of_bytes = speed / median(rates), 1e6 * median(read_mb) / streamed
        return [f"{median(rates):.3f}", f"{ratio:.2f}", f"{of_bytes:.2f}", f"{ratio / of_bytes:.2f}"]

    def part_first(self):
        model, limit, rows = self.path_of(WIDE), 2560, []
        for rate in self.args.rates:
            shares, seconds, reads = [], [], []
            for i in range(self.args.pairs if not rate else 2):
                disk = self.reader(model, limit, rate)
                got = self.drey(model, limit, rate, 1)
                needed = got["pinned_bytes"] + got["streamed_bytes_per_pass"]
                reads.append(needed / disk)
                seconds.append(got["wall_s"])
                shares.append(seconds[-1] / reads[-1])
                self.note(f"first-{limit}-{rate or 'none'}", "drey", i, wall_s=got["wall_s"], needed=needed, disk=disk)
            rows.append([str(rate or "not throttled"), f"{needed / 1e6:.0f}", f"{median(reads):.2f}", f"{median(seconds):.2f}", turns(shares)])
        table("First token of wide6b in 2560 MiB, from the program's start, cold", ["disk, MB/s", "MB needed", "reading them once, s", "first token, s",
                                                                                   "ratio"], rows)

    def part_prompt(self):
        model, limit, rows = self.path_of(WIDE), 2560, []
        prompt = "The three most important things about squirrels are these. " * 45  # 11 tokens each
        _, row_s = self.compute_s(model, 512)
        for rate in self.args.rates:
            disk = self.reader(model, limit, rate)
            got = self.drey(model, limit, rate, 1, prompt=prompt)
            once, streamed = got["pinned_bytes"] + got["streamed_bytes_per_pass"], got["streamed_bytes_per_pass"]
            passes, tokens = 1 + round((got["load_bytes"] - once) / streamed), got["prompt_tokens"]  # the first pass loads
            read = [once / disk] + [streamed / disk] * (passes - 1)
            compute = [min(256, tokens - 256 * i) * row_s for i in range(passes)]
            bound = sum(map(max, read, compute))
            rows.append([str(rate or "not throttled"), str(tokens), str(passes), f"{got['load_bytes'] / 1e6:.0f}", f"{sum(read):.1f}",
                         f"{sum(compute):.1f}", f"{bound:.1f}", f"{got['prompt_s']:.1f}", f"{got['prompt_s'] / bound:.2f}"])
            self.note(f"prompt-{rate or 'none'}", "drey", 0, prompt_s=got["prompt_s"], read_s=sum(read), compute_s=sum(compute), bound_s=bound)
        table("A prompt of 500 tokens, wide6b in 2560 MiB", ["disk, MB/s", "tokens", "passes", "MB read", "reading alone, s", "computing alone, s",
                                                             "the longer of both in each pass, s", "the prompt, s", "over that"], rows)

    def part_memory(self):
        rows = []
        for name in (WIDE, TARGET):
            model, ratios, pairs = self.path_of(name), [], []
            for i in range(self.args.pairs):
                bound, free = (self.drey(model, 8192, None, 64, "--memory", m)["tokens_per_s"] for m in ("7000M", "unlimited"))
                pairs.append((bound, free))
                ratios.append(bound / free)
                self.note(f"memory-{name}", "drey", i, with_budget=bound, without=free)
            rows.append([name, f"{median([p[0] for p in pairs]):.2f}", f"{median([p[1] for p in pairs]):.2f}", turns(ratios)])
        table("In memory, tokens/s", ["model", "budget above the file", "no budget", "ratio"], rows)

    def part_reader(self):
        model, limit, rows = self.path_of(WIDE), 2560, []
        for rate in self.args.rates:
            both = [(self.reader(model, limit, rate), self.fio(model, limit, rate)) for _ in range(self.args.pairs if not rate else 3)]
            ratios = [a / b for a, b in both]
            for i, (a, b) in enumerate(both):
                self.note(f"reader-{rate or 'none'}", "drey", i, drey=a, fio=b)
            rows.append([str(rate or "not throttled"), f"{median([a for a, _ in both]) / 1e6:.0f}", f"{median([b for _, b in both]) / 1e6:.0f}",
                         turns(ratios)])
        table("A plain reader, MB/s", ["disk, MB/s", "drey bench disk", "fio", "ratio"], rows)

    def path_of(self, name):
        path = os.path.join(self.args.models, name)
        if not os.path.exists(path):
            raise SystemExit(f"bench-stream: no {path}: scripts/get-models.sh fetches models, scripts/widen_gguf.py makes wide6b")
        return path


def main():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("drey")
    p.add_argument("--peer", help="a folder with llama.cpp's llama-completion")
    p.add_argument("--parts", default=",".join(PARTS))
    p.add_argument("--models", default=os.environ.get("DREY_MODELS") or f"{home}/drey/models")
    p.add_argument("--limits", type=lambda s: [int(v) for v in s.split(",")], default=[2560, 1536, 1024])
    p.add_argument("--rates", type=lambda s: [None if v == "none" else int(v) for v in s.split(",")], default=[None, 1000, 300, 100])
    p.add_argument("--pairs", type=int, default=5)
    p.add_argument("--csv")
    args = p.parse_args()
    unknown = [part for part in args.parts.split(",") if part not in PARTS]
    if unknown:
        p.error(f"no part {unknown[0]!r}; there are: " + ", ".join(PARTS))
    cpu = re.search(r"^model name\s*: (.*)", open("/proc/cpuinfo").read(), re.M)
    print(f"machine: {cpu.group(1) if cpu else platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, folder)
        for part in args.parts.split(","):
            getattr(bench, "part_" + part)()
            if args.csv:
                with open(args.csv, "w", newline="") as f:
                    csv.writer(f, lineterminator="\n").writerows([("case", "side", "turn", "metric", "value"), *bench.values])
    return 0


if __name__ == "__main__":
    sys.exit(main())
