"""Measures what a mixture of experts makes of a disk when it is routed as a published trace was:
without a draft, with one, and after a long prompt.

The model has experts that all compute the same function (its text is a dense model's), so that any
routes may be replayed through it (build/bench/programs/replay_routes, which says how). A trace is
what --routes names: CSV as BigMoeOnEdge writes it (turn,phase,step,layer,slot,expert,...) or JSON
lines ({"layers": [[expert, ...], ...]}), packed by gzip or not.

plain:  tokens/s by the share of experts that are kept, and by the share of a layer's experts that
        the layer before it guesses (--recall; 0: nothing is guessed). What the disk allows are the
        bytes that missing experts have at the speed of `drey bench disk`, what computing allows is
        the same text with all experts in memory; the ratio is to the longer of both, and to both
        together
draft:  the same with a draft (--draft) and by lookup, over no draft, on several prompts
prompt: the hits of a text after a short prompt, and after a long one whose experts are drawn

Sides take turns. A run during which other processes took more than --others of the processor is
done again."""
import gzip
import json
import os
import resource
import subprocess
import time

from record import figure, median, table
from sides import HERE, Stop, chosen

PARTS = ("plain", "draft", "prompt")
PROMPTS = ("The three most important things about squirrels are these. ",
           "Write a short story about a lighthouse keeper who finds a message in a bottle.",
           "def reverse(list):\n    \"\"\"Reverses a list in place.\"\"\"\n",
           "Question: Why is the sky blue?\nAnswer:",
           "The history of the Roman Empire begins",
           "A recipe for bread:\n1.")


def numbers(text):
    return [int(v) for v in text.split(",")]


def add_arguments(p):
    p.add_argument("--mixture", required=True, metavar="FILE", help="the model")
    p.add_argument("--routes", required=True, nargs="+", metavar="[EXPERTS:]FILE",
                   help="traces, each after the number of its model's experts (128)")
    p.add_argument("--draft", metavar="FILE", help="a small model")
    p.add_argument("--sidecar", metavar="FILE", help="the mixture's; otherwise none is used")
    p.add_argument("--program", default=os.path.join(HERE, "build/bench/programs/replay_routes"))
    p.add_argument("--parts", default=",".join(PARTS), help="some of: " + ",".join(PARTS))
    p.add_argument("--kept", type=numbers, default=[10, 20, 30, 40], help="percent of the experts")
    p.add_argument("--recall", type=numbers, default=[0, 85], help="percent, of what is guessed")
    p.add_argument("--whole", type=float, metavar="TOKENS_PER_S",
                   help="with all experts in memory, where they do not fit here")
    p.add_argument("--tokens", type=int, default=100)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--others", type=float, default=0.1)
    p.add_argument("--first", action="store_true",
                   help="gives the runs priority over other processes (root, autogroups)")


def layers_of(path):
    """[token][layer] -> experts; of layers those that all tokens have."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f:
        lines = [line for line in f if not line.startswith("#")]
    if lines[0].startswith("{"):
        tokens = [json.loads(line)["layers"] for line in lines]
    else:
        chosen_of = {}
        for line in lines[1:]:
            turn, _, step, layer, _, expert = (int(v) for v in line.split(",")[:6])
            chosen_of.setdefault((turn, step), {}).setdefault(layer, []).append(expert)
        tokens = [[t[layer] for layer in sorted(t)] for _, t in sorted(chosen_of.items())]
    n_layers = min(len(t) for t in tokens)
    return [[sorted(layer) for layer in t[:n_layers]] for t in tokens]


def write_routes(word, folder):
    """Writes the file that replay_routes reads; returns (name, file, experts)."""
    n_experts, path = word.split(":", 1) if ":" in word else ("128", word)
    tokens = layers_of(path)
    name = os.path.basename(path).split(".")[0].split("_")[0]
    out = os.path.join(folder, name + ".routes")
    with open(out, "w") as f:
        f.write(f"{len(tokens)} {len(tokens[0])} {n_experts} {len(tokens[0][0])}\n")
        f.writelines(" ".join(map(str, layer)) + "\n" for t in tokens for layer in t)
    return name, out, int(n_experts)


def busy_s():
    """Seconds that all processors were at work so far."""
    with open("/proc/stat") as f:
        words = f.readline().split()
    return sum(int(words[i]) for i in (1, 2, 3, 6, 7)) / os.sysconf("SC_CLK_TCK")


def children_s():
    use = resource.getrusage(resource.RUSAGE_CHILDREN)
    return use.ru_utime + use.ru_stime


class Replay:
    def __init__(self, args, drey, record):
        self.args, self.drey, self.record = args, drey, record
        self.again = 0

    def once(self, routes, words):
        first = ["setsid", "-w", "sh", "-c", 'echo -20 >/proc/self/autogroup; exec "$@"', "sh"]
        command = [*(first if self.args.first else []), self.args.program, self.args.mixture, routes, "--threads", str(self.args.threads),
                   "-n", str(self.args.tokens), *map(str, words),
                   *(["--sidecar", self.args.sidecar] if self.args.sidecar else [])]
        start, busy, own = time.monotonic(), busy_s(), children_s()
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        if done.returncode:
            raise Stop(done.stderr.decode(errors="replace")[-500:])
        wall = time.monotonic() - start
        others = (busy_s() - busy) - (children_s() - own)
        return json.loads(done.stdout), others / (wall * os.cpu_count())

    def run(self, case, side, round_, routes, words):
        for _ in range(40):
            result, others = self.once(routes, words)
            if others <= self.args.others:
                break
            self.again += 1
            time.sleep(5)
        else:
            raise Stop("the machine is never quiet")
        self.record.note(case, side, round_, **result)
        return result

    def disk_bytes_per_s(self, round_):
        out = os.path.join(self.drey.folder, "disk.json")
        subprocess.run([self.drey.program, "bench", "disk", "-m", self.args.mixture, "--json", out],
                       check=True, stdout=subprocess.DEVNULL)
        with open(out) as f:
            speed = json.load(f)["bytes_per_s"]
        self.record.note("disk", "drey", round_, bytes_per_s=speed)
        return speed

    # ---- Parts

    def part_plain(self, name, routes, n_experts):
        rows, disks, whole = [], [], self.args.whole
        sides = [(percent, recall) for percent in self.args.kept for recall in self.args.recall]
        for i in range(self.args.rounds):
            disks.append(self.disk_bytes_per_s(i))
            for percent, recall in sides:
                self.run(name, f"{percent} % {recall}", i, routes,
                         ["--slots", max(n_experts * percent // 100, 1), "--recall", recall])
            if not whole: # the second lap of the trace finds everything there
                self.run(name, "100 %", i, routes, ["--slots", n_experts, "--prompt-tokens", 330])
        whole = 1 / (whole or self.record.median(name, "100 %", "tokens_per_s"))
        disk = median(disks)
        for percent, recall in sides:
            of = {m: self.record.median(name, f"{percent} % {recall}", m) for m in
                  ("tokens_per_s", "hits", "simulated_hits", "bytes_per_token", "wait_s", "decode_s",
                   "disk_busy_s", "vain_bytes", "tokens")}
            vain = of["vain_bytes"] / (of["tokens"] - 1)
            read = (of["bytes_per_token"] - vain) / disk
            rows.append([f"{percent} %", f"{recall} %", figure(of["tokens_per_s"]), figure(100 * of["hits"]),
                         figure(100 * of["simulated_hits"]), figure((of["bytes_per_token"] - vain) / 1e6),
                         figure(vain / 1e6), figure(1 / read), figure(of["tokens_per_s"] * read),
                         figure(of["tokens_per_s"] * max(read, whole)),
                         figure(of["tokens_per_s"] * (read + whole)),
                         figure(of["wait_s"] / of["decode_s"]),
                         figure(of["disk_busy_s"] / of["decode_s"])])
        table(f"{name}: disk {disk / 1e9:.2f} GB/s, {1 / whole:.1f} tokens/s with all in memory",
              ["kept", "guessed", "tokens/s", "hits, %", "LRU alone, %", "MB per token", "in vain",
               "disk allows", "of the disk's", "of the longer", "of both in turn", "waiting",
               "disk busy"], rows)

    def part_draft(self, name, routes, n_experts):
        sides = {"none": [], "lookup": ["--lookup"]}
        if self.args.draft:
            sides["draft"] = ["--draft", self.args.draft]
        rows = []
        for percent in self.args.kept:
            slots = max(n_experts * percent // 100, 1)
            for j, prompt in enumerate(PROMPTS):
                case = f"{name} {percent} % prompt {j}"
                for i in range(self.args.rounds):
                    for side, words in sides.items():
                        self.run(case, side, i, routes, ["--slots", slots, "--prompt", prompt, *words])
                row = [f"{percent} %", str(j), figure(self.record.median(case, "none", "tokens_per_s"))]
                for side in list(sides)[1:]:
                    row += [figure(median(self.record.ratios(case, "tokens_per_s", side, "none"))),
                            figure(self.record.median(case, side, "tokens_per_pass")),
                            figure(self.record.median(case, side, "drafted") /
                                   self.record.median(case, side, "passes"))]
                rows.append(row)
        table(f"{name}: over no draft", ["kept", "prompt", "none, tokens/s"] +
              [f"{s}{w}" for s in list(sides)[1:] for w in ("", ": tokens per pass", ": nodes per pass")],
              rows)

    def part_prompt(self, name, routes, n_experts):
        rows = []
        for percent in self.args.kept:
            words = ["--slots", max(n_experts * percent // 100, 1)]
            for side, more in (("short", []), ("long", ["--prompt-at-random", "--prompt-tokens", 600])):
                got = self.run(f"{name} {percent} %", side, 0, routes, [*words, *more])
                rows.append([f"{percent} %", side, figure(100 * got["hits"]),
                             figure(100 * got["simulated_hits"])])
        table(f"{name}: hits after a prompt", ["kept", "prompt", "hits, %", "LRU alone, %"], rows)


def run(args, drey, record):
    bench = Replay(args, drey, record)
    for part in chosen(args.parts, PARTS, "part"):
        for word in args.routes:
            getattr(bench, "part_" + part)(*write_routes(word, drey.folder))
    print(f"\nRuns done again, because the machine was not quiet: {bench.again}")
