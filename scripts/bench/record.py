"""Values, medians and tables: what the subcommands share once something has been measured."""
import csv
import datetime
import os
import platform
import re
import statistics
import sys

HEAD = ("case", "side", "round", "metric", "value")
WIDTHS = (1, 2, 4, 8, 16, 32, 64)
# What engines are compared by in memory: metric, title, unit.
SPEEDS = [("prefill_tokens_per_s", "prefill, tokens/s", 1), ("decode_tokens_per_s", "decode, tokens/s", 1),
          *((f"pass_{n}_s", f"pass of {n}, ms", 1e3) for n in WIDTHS)]


def case_of(model):
    return os.path.basename(model).removesuffix(".gguf")


def median(values):
    return statistics.median(values) if values else float("nan")


def spread(values, digits=2):
    """The median, and in brackets every round."""
    if not values:
        return "-"
    each = " ".join(f"{v:.{digits}f}" for v in values)
    return f"{median(values):.{digits}f} ({each})"


def figure(value):
    """Three digits, however large."""
    if value is None or value != value:
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(title, head, rows):
    print(f"\n{title}\n\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    sys.stdout.flush()


def less_is_better(metric):
    """Seconds (pass_8_s, wall_s), and passes over a pass of one row (t_8)."""
    return metric.startswith("t_") or metric.endswith("_s") and not metric.endswith("_per_s")


class Record:
    """Every value that was measured, on disk as soon as it is known: what was measured before a
    run is interrupted is not lost."""

    def __init__(self, path):
        self.values = {}  # (case, side, metric) -> {round: value}
        self.file = open(path, "w", newline="") if path else None
        self.writer = csv.writer(self.file, lineterminator="\n") if path else None
        self._write(HEAD)

    def _write(self, row):
        if self.writer:
            self.writer.writerow(row)
            self.file.flush()

    def about(self, side, **facts):
        for name, value in facts.items():
            self._write(("run", side, "", name, value))
        print(f"{side}: " + ", ".join(f"{k} {v}" for k, v in facts.items()), flush=True)

    def about_machine(self):
        info = open("/proc/cpuinfo").read()

        def of_cpu(key):
            found = re.search(rf"^{key}\s*: (.*)", info, re.M)
            return found.group(1) if found else ""

        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self.about("machine", cpu=of_cpu("model name") or platform.machine(),
                   family=of_cpu("cpu family"), model=of_cpu("model"),
                   cores=len(os.sched_getaffinity(0)), memory_gib=round(pages / 2**30, 1),
                   system=f"{platform.system()} {platform.release()}",
                   date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"))

    def note(self, case, side, round_, **metrics):
        for metric, value in metrics.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                self.values.setdefault((case, side, metric), {})[round_] = value
                self._write((case, side, round_, metric, value))

    def of(self, case, side, metric):
        return self.values.get((case, side, metric), {})

    def median(self, case, side, metric):
        return median(list(self.of(case, side, metric).values()))

    def ratios(self, case, metric, ours, theirs):
        """Ratios of each round in which both sides have a value; above 1 where ours is better."""
        a, b = self.of(case, ours, metric), self.of(case, theirs, metric)
        pairs = [(a[r], b[r]) for r in a if a[r] and b.get(r)]
        return [y / x if less_is_better(metric) else x / y for x, y in pairs]

    def better(self, case, metric, sides):
        """The side with the better median; None where no side has a value."""
        have = [s for s in sides if self.of(case, s, metric)]
        pick = min if less_is_better(metric) else max
        return pick(have, key=lambda s: self.median(case, s, metric)) if have else None
