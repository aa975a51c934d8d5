"""The programs that are measured: drey, and the peers that are built from ggml."""
import json
import os
import re
import subprocess
import sys

HERE = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
CACHE = os.environ.get("DREY_MODELS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "drey/models")
SMOL = "SmolLM2-135M-Instruct.Q4_1.gguf"
DRAFT = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
TARGET = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
WIDE = "wide6b.gguf"
MIB = 1 << 20


QUESTION = "Write a C function that reverses a singly linked list in place, and explain it in a few sentences."
SQUIRRELS = "The three most important things about squirrels are these. "  # 11 tokens


class Stop(Exception):
    """Something is missing, or has failed: said to the user, and the end."""


def chosen(words, known, what, mark=","):
    """The words of an option that takes some of those that are known."""
    words = words.split(mark)
    for word in words:
        if word not in known:
            raise Stop(f"no {what} {word!r}; there are: " + f"{mark} ".join(known))
    return words


def run(command, **how):
    """Runs a command; its standard output. What it wrote to standard error is shown if it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **how)
    if done.returncode:
        raise Stop("failed: " + " ".join(command)[:600] + "\n" +
                   done.stderr.decode(errors="replace")[-2000:])
    return done.stdout


def commit_of(path):
    """The commit of the checkout that holds a file, or "none"."""
    where = os.path.dirname(os.path.abspath(path))
    done = subprocess.run(["git", "-C", where, "describe", "--always", "--dirty", "--exclude", "*"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.decode().strip() or "none"


class Limits:
    """Runs commands in memory cgroups of their own without swap, with a cold page cache."""

    def __init__(self, folder, disk_of):
        self.report, self.disk_of = os.path.join(folder, "limit.json"), disk_of

    def run(self, limit_mib, command, rate=None, may_die=False, timeout=1800):
        """memlimit.py's report, standard output and standard error. rate: the most MB/s that may be
        read; may_die: being killed for memory is a result, not a fault."""
        if os.geteuid() != 0:
            raise Stop("memory cgroups need root")
        if os.path.exists(self.report):
            os.unlink(self.report)
        words = [sys.executable, f"{HERE}/scripts/memlimit.py", str(limit_mib), "--timeout",
                 str(timeout), "--json", self.report, "--disk-of", self.disk_of]
        words += ["--read-mb-s", str(rate)] if rate else []
        done = subprocess.run([*words, "--", *command], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        error = done.stderr.decode(errors="replace")
        try:
            with open(self.report) as f:
                report = json.load(f)
        except OSError:
            raise Stop(f"no memory cgroup could be made: {error[-500:]}") from None
        if done.returncode and not (may_die and report["oom_kills"]):
            raise Stop("failed: " + " ".join(command)[:600] + "\n" + error[-2000:])
        return report, done.stdout, error


class Drey:
    def __init__(self, program, models, threads, folder):
        self.program, self.models, self.folder = os.path.abspath(program), models, folder
        self.threads, self.limits = str(threads), Limits(folder, models)

    def version(self):
        if not os.access(self.program, os.X_OK):
            raise SystemExit(f"bench: no {self.program}: scripts/build.sh build makes it")
        out = run([self.program, "--version"]).decode().split("\n")[0]
        return f"{out}, commit {commit_of(self.program)}"

    def path(self, name):
        return os.path.join(self.folder, name)

    def model(self, name):
        """The path of a model by its name in the models' folder, or by its own path."""
        path = name if os.sep in name else os.path.join(self.models, name)
        if not os.path.exists(path):
            raise Stop(f"no {path}: scripts/get-models.sh fetches models, scripts/widen_gguf.py "
                       "makes wide6b.gguf of the target")
        return path

    def bench_model(self, model, limit_mib=None, prompt=512, decode=128, more=()):
        """Returns what `drey bench model` says of prompt, text and passes, flat: pass_N_s and so
        on. In a limit, --memory is the limit over 1.05."""
        out = self.path("model.json")
        memory = str(limit_mib * MIB * 100 // 105) if limit_mib else "unlimited"
        command = [self.program, "bench", "model", "-m", model, "-t", self.threads,
                   "--prompt-tokens", str(prompt), "--decode-tokens", str(decode), "--contexts", "0",
                   "--memory", memory, "--sidecar", "none", "--json", out, *more]
        report = {}
        if limit_mib:
            report, _, _ = self.limits.run(limit_mib, command)
        else:
            run(command)
        with open(out) as f:
            got = json.load(f)
        for p in got.get("passes", []):
            got[f"pass_{p['rows']}_s"] = p["pass_s"]
            got[f"pass_{p['rows']}_peak_share"] = p["peak_share"]
            if p["rows"] > 1:
                got[f"t_{p['rows']}"] = p["ratio"]
        return {**got, **report}

    def generate(self, model, limit_mib, tokens, more=(), rate=None, context=1024, memory=None):
        """One run in a limit; its statistics, what its cgroup saw, and its text. Without --memory
        the budget is the limit over 1.05. Without -d there is no draft: none is looked for."""
        draft = [] if "-d" in more else ["-d", "none"]
        end = [] if "--json-schema" in more else ["--ignore-eos"]
        stats = self.path("stats.json")
        memory = memory or str(limit_mib * MIB * 100 // 105)
        report, text, _ = self.limits.run(limit_mib, [
            self.program, "run", "-m", model, "--memory", memory, "-t", self.threads, "-c",
            str(context), "-n", str(tokens), "-q", "--stats", stats, *end, *draft, *more], rate)
        with open(stats) as f:
            got = {**json.load(f), **report}
        if got["limit_hits"] or got["oom_kills"] or got["decode_major_faults"]:
            print(f"bench: limit hit, kill or major fault: {report}", file=sys.stderr)
        return got, text

    def reader(self, model, limit_mib, rate=None):
        """Bytes per second of a plain reader of the model's tensors."""
        out = self.limits.run(limit_mib, [
            self.program, "bench", "disk", "-m", model, "--seconds", "10" if rate else "3",
            "--json", "-"], rate)
        return json.loads(out[1])["bytes_per_s"]


class Peer:
    """llama.cpp or ik_llama.cpp: a folder with its programs."""

    def __init__(self, folder, threads, taken=()):
        self.folder, self.threads = os.path.abspath(folder), str(threads)
        self.env = {**os.environ, "LD_LIBRARY_PATH": ":".join(filter(None, [
            self.folder, os.environ.get("LD_LIBRARY_PATH")]))}
        program = next(filter(self.has, ("llama-bench", "llama-server")), None)
        if not program:
            raise Stop(f"{folder} has no llama-bench")
        shown = subprocess.run([f"{self.folder}/{program}", "--help"], env=self.env,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT).stdout
        self.repacks = b"--run-time-repack" in shown
        self.name = "ik_llama.cpp" if self.repacks else "llama.cpp"
        if self.name in taken:
            self.name += f"-{len(taken) + 1}"

    def has(self, program):
        return os.access(f"{self.folder}/{program}", os.X_OK)

    def ways(self):
        """(side, options): as it is, and with weights repacked when loading where it can."""
        return [(self.name, [])] + ([(self.name + "+repack", ["-rtr", "1"])] if self.repacks else [])

    def bench(self, model, options, prompt, decode, widths, repeats):
        """Returns what drey.bench_model says, of llama-bench. A pass of n rows is its prompt of n
        tokens, with logits for the last row alone. Also the build it names."""
        def measure(*words):
            return json.loads(run([f"{self.folder}/llama-bench", "-m", model, "-t", self.threads,
                                   "-o", "json", *options, *words], env=self.env))

        got = {}
        for t in measure("-p", str(prompt), "-n", str(decode), "-r", "1"):
            got["prefill_tokens_per_s" if t["n_prompt"] else "decode_tokens_per_s"] = t["avg_ts"]
            got["build"] = f"{t['build_number']} ({t['build_commit']})"
        if widths:
            for t in measure("-p", ",".join(map(str, widths)), "-n", "0", "-r", str(repeats)):
                got[f"pass_{t['n_prompt']}_s"] = t["n_prompt"] / t["avg_ts"]
        return got

    def generate(self, limits, model, limit_mib, prompt_file, tokens, more=(), rate=None):
        """llama-completion mapping the file in a limit: tokens/s of decoding and what its cgroup
        saw. tokens_per_s is missing where it was killed for its memory."""
        report, _, error = limits.run(limit_mib, [
            "env", f"LD_LIBRARY_PATH={self.env['LD_LIBRARY_PATH']}",
            f"{self.folder}/llama-completion", "-m", model, "-t", self.threads, "-c", "512", "-bf",
            prompt_file, "-n", str(tokens), "--temp", "0", "--ignore-eos", "-no-cnv", "--no-warmup",
            "--no-display-prompt", "--perf", "--load-mode", "mmap", *more], rate, may_die=True)
        # From milliseconds and runs: the rate that it prints has too few digits.
        found = re.findall(r"[^t] eval time = *([0-9.]+) ms / *([0-9]+) runs", error)
        if found and not report["oom_kills"]:
            ms, runs = map(float, found[-1])
            report["tokens_per_s"] = 1000 * runs / ms if ms else 0
        return report


def peer_of(folder, threads, record, taken=()):
    """The peer of a folder, noted in the record; None: there is none."""
    peer = Peer(folder, threads, taken) if folder else None
    if peer:
        record.about(peer.name, commit=commit_of(folder))
    return peer


def peers_of(folders, threads, record):
    found = []
    for folder in folders:
        found.append(peer_of(folder, threads, record, [p.name for p in found]))
    return found


def peer_arguments(parser, needs, nargs="*"):
    parser.add_argument("peers", metavar="PEER_BIN_DIR", nargs=nargs,
                        help=f"a folder with a peer's {needs}, built on this machine")
