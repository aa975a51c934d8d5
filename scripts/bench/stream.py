"""Measures what drey makes of a disk while a model larger than the memory limit writes text.

pass:   wide6b without a draft in each limit and at each throttled rate: tokens/s over the ceiling
        (1 over the longer of a pass's reads at the speed of a plain reader, and its computing in
        memory), reader and drey taking turns; with --peer also llama.cpp, which maps the same file
        in the same limit (with the settings that need least memory), and the ratio of the bytes
        that both read per token
first:  the first token after a start with a cold cache, over reading every needed byte of the file
        once
prompt: a prompt of 500 tokens, over the longer of reading and computing in each of its passes
memory: everything in memory, with a budget and without one
reader: `drey bench disk` against fio, throttled

Every run is in its own memory cgroup without swap, with a cold page cache (root); --memory is
the limit over 1.05."""
import json
import shutil

from record import median, spread, table
from sides import QUESTION, SQUIRRELS, TARGET, WIDE, Stop, chosen, peer_of

PARTS = ("reader", "pass", "first", "prompt", "memory")
LONG_PROMPT = SQUIRRELS * 45
LIMIT = 2560  # of the parts that have one


def numbers(text):
    return [int(v) for v in text.split(",")]


def rates(text):
    return [None if v == "none" else int(v) for v in text.split(",")]


def add_arguments(p):
    p.add_argument("--peer", metavar="LLAMA_CPP_BIN_DIR", help="a folder with llama-completion")
    p.add_argument("--parts", default=",".join(PARTS), help="some of: " + ",".join(PARTS))
    p.add_argument("--limits", metavar="MIB,MIB", type=numbers, default=[2560, 1536, 1024])
    p.add_argument("--rates", metavar="none,MB_S", type=rates, default=[None, 1000, 300, 100])
    p.add_argument("--rounds", type=int, default=5,
                   help="turns of each side where the disk is not throttled, else 2 (default 5)")


def run(args, drey, record):
    parts = chosen(args.parts, PARTS, "part")
    if "reader" in parts and not shutil.which("fio"):
        raise Stop("part reader needs fio (Debian package fio); or leave it out of --parts")
    bench = Stream(args, drey, record)
    for part in parts:
        getattr(bench, "part_" + part)()


class Stream:
    def __init__(self, args, drey, record):
        self.args, self.drey, self.record = args, drey, record
        self.wide = drey.model(WIDE)
        self.peer = peer_of(args.peer, args.threads, record)

    def rounds(self, rate):
        return self.args.rounds if not rate else 2

    def generate(self, model, limit, rate, tokens, prompt=QUESTION, memory=None):
        more = ["--sidecar", "none", "-p", prompt]
        return self.drey.generate(model, limit, tokens, more, rate, memory=memory)[0]

    def compute_s(self, model, n_prompt=16):
        """Seconds of a pass of one row, and of a row of a prompt, in memory."""
        got = self.drey.bench_model(model, prompt=n_prompt, decode=16)
        return 1 / got["decode_tokens_per_s"], 1 / got["prefill_tokens_per_s"]

    # ---- Passes

    def part_pass(self):
        compute, _ = self.compute_s(self.wide)
        print(f"\nA pass of one row in memory: {1000 * compute:.0f} ms.", flush=True)
        rows = []
        for limit in self.args.limits:
            for rate in self.args.rates:
                rows.append(self.passes(limit, rate, compute))
                print("bench stream:", rows[-1], flush=True)
        table("wide6b without a draft", [
            "limit, MiB", "disk, MB/s", "MB per pass", "ceiling, tokens/s", "drey", "over ceiling",
            "charged, MiB", "llama.cpp, mmap", "ratio", "bytes per token, llama.cpp / drey",
            "ratio over that"], rows)

    def passes(self, limit, rate, compute):
        tokens = 4 if rate and rate <= 100 else 8 if rate and rate <= 300 else 12
        case, shares = f"pass-{limit}-{rate or 'none'}", []
        for i in range(self.rounds(rate)):
            disk = self.drey.reader(self.wide, limit, rate)
            got = self.generate(self.wide, limit, rate, tokens)
            streamed = got["streamed_bytes_per_pass"]
            ceiling = 1 / max(streamed / disk, compute)
            shares.append(got["tokens_per_s"] / ceiling)
            self.record.note(case, "reader", i, bytes_per_s=disk, ceiling=ceiling)
            self.record.note(case, "drey", i, **got)
        speed, peak = (self.record.median(case, "drey", m) for m in ("tokens_per_s", "peak_mib"))
        row = [str(limit), str(rate or "not throttled"), f"{streamed / 1e6:.0f}",
               f"{self.record.median(case, 'reader', 'ceiling'):.3f}", f"{speed:.3f}",
               spread(shares), f"{peak:.0f}"]
        return row + (self.compare(case, limit, rate, speed, streamed) if self.peer else ["-"] * 4)

    def compare(self, case, limit, rate, speed, streamed):
        """llama.cpp; what a longer text reads more than one token is what its tokens read."""
        question, tokens, read_mb = self.drey.path("prompt"), 4 if rate else 8, []
        with open(question, "w") as f:
            f.write(QUESTION)
        for i in range(1 if rate else 3):
            one, more = (self.peer.generate(self.drey.limits, self.wide, limit, question, n,
                                            ["--no-repack", "-ub", "64"], rate)
                         for n in (1, 1 + tokens))
            if one["oom_kills"] or more["oom_kills"]:
                return ["killed", "-", "-", "-"]
            self.record.note(case, self.peer.name, i, read_mb_of_one=one["read_mb"], **more)
            read_mb.append((more["read_mb"] - one["read_mb"]) / tokens)
        theirs = self.record.median(case, self.peer.name, "tokens_per_s")
        ratio, of_bytes = speed / theirs, 1e6 * median(read_mb) / streamed
        return [f"{theirs:.3f}", f"{ratio:.2f}", f"{of_bytes:.2f}", f"{ratio / of_bytes:.2f}"]

    # ---- The beginning

    def part_first(self):
        rows = []
        for rate in self.args.rates:
            case, shares = f"first-{LIMIT}-{rate or 'none'}", []
            for i in range(self.rounds(rate)):
                disk = self.drey.reader(self.wide, LIMIT, rate)
                got = self.generate(self.wide, LIMIT, rate, 1)
                needed = got["pinned_bytes"] + got["streamed_bytes_per_pass"]
                shares.append(got["wall_s"] / (needed / disk))
                self.record.note(case, "drey", i, wall_s=got["wall_s"], needed=needed, disk=disk,
                                 read_s=needed / disk)
            rows.append([str(rate or "not throttled"), f"{needed / 1e6:.0f}",
                         f"{self.record.median(case, 'drey', 'read_s'):.2f}",
                         f"{self.record.median(case, 'drey', 'wall_s'):.2f}", spread(shares)])
        table(f"First token of wide6b in {LIMIT} MiB, from the program's start, cold", [
            "disk, MB/s", "MB needed", "reading them once, s", "first token, s", "ratio"], rows)

    def part_prompt(self):
        _, row_s = self.compute_s(self.wide, 512)
        rows = [self.prompt(rate, row_s) for rate in self.args.rates]
        table(f"A prompt of 500 tokens, wide6b in {LIMIT} MiB", [
            "disk, MB/s", "tokens", "passes", "MB read", "reading alone, s", "computing alone, s",
            "the longer of both in each pass, s", "the prompt, s", "over that"], rows)

    def prompt(self, rate, row_s):
        disk = self.drey.reader(self.wide, LIMIT, rate)
        got = self.generate(self.wide, LIMIT, rate, 1, LONG_PROMPT)
        streamed = got["streamed_bytes_per_pass"]
        once = got["pinned_bytes"] + streamed  # the first pass loads
        n_passes = 1 + round((got["load_bytes"] - once) / streamed)
        n_tokens, took = got["prompt_tokens"], got["prompt_s"]
        read = [once / disk] + [streamed / disk] * (n_passes - 1)
        compute = [min(256, n_tokens - 256 * i) * row_s for i in range(n_passes)]
        bound = sum(map(max, read, compute))
        self.record.note(f"prompt-{rate or 'none'}", "drey", 0, prompt_s=took, read_s=sum(read),
                         compute_s=sum(compute), bound_s=bound)
        return [str(rate or "not throttled"), str(n_tokens), str(n_passes),
                f"{got['load_bytes'] / 1e6:.0f}", f"{sum(read):.1f}", f"{sum(compute):.1f}",
                f"{bound:.1f}", f"{took:.1f}", f"{took / bound:.2f}"]

    # ---- In memory, and the reader itself

    def part_memory(self):
        rows = []
        for name in (WIDE, TARGET):
            case, model = f"memory-{name}", self.drey.model(name)
            for i in range(self.args.rounds):
                for side, memory in (("with_budget", "7000M"), ("without", "unlimited")):
                    got = self.generate(model, 8192, None, 64, memory=memory)
                    self.record.note(case, side, i, tokens_per_s=got["tokens_per_s"])
            rows.append([name] + [f"{self.record.median(case, side, 'tokens_per_s'):.2f}"
                                  for side in ("with_budget", "without")] +
                        [spread(self.record.ratios(case, "tokens_per_s", "with_budget", "without"))])
        table("In memory, tokens/s", ["model", "a budget above the file", "no budget", "ratio"], rows)

    def part_reader(self):
        rows = []
        for rate in self.args.rates:
            case = f"reader-{rate or 'none'}"
            for i in range(self.args.rounds if not rate else 3):
                self.record.note(case, "drey", i, bytes_per_s=self.drey.reader(self.wide, LIMIT, rate))
                self.record.note(case, "fio", i, bytes_per_s=self.fio(rate))
            rows.append([str(rate or "not throttled")] +
                        [f"{self.record.median(case, s, 'bytes_per_s') / 1e6:.0f}" for s in ("drey", "fio")] +
                        [spread(self.record.ratios(case, "bytes_per_s", "drey", "fio"))])
        table("A plain reader, MB/s", ["disk, MB/s", "drey bench disk", "fio", "ratio"], rows)

    def fio(self, rate):
        """16 direct reads of 1 MiB at a time, as drey's."""
        out = self.drey.limits.run(LIMIT, [
            "fio", "--name=read", f"--filename={self.wide}", "--readonly", "--direct=1",
            "--ioengine=io_uring", "--iodepth=16", "--rw=read", "--bs=1M",
            f"--runtime={10 if rate else 3}", "--time_based", "--output-format=json"], rate)[1]
        return json.loads(out[out.index(b"{"):])["jobs"][0]["read"]["bw_bytes"]
