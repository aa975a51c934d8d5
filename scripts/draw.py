#!/usr/bin/env python3
"""Draws what drey and scripts/bench measured: an SVG file that stands alone and follows the
reader's scheme.

    draw.py edge RESULTS.csv -o PICTURE.svg      speeds of all sides (scripts/bench edge, units)
    draw.py budgets RESULTS.csv -o PICTURE.svg   the same by memory budget, the best of llama.cpp's
                                                 sides ("llama.cpp...") at each; --target, --draft
    draw.py exits RESULTS.csv -o PICTURE.svg     speeds, and where tokens left (scripts/bench exits)
    draw.py tune TUNED.json -o PICTURE.svg       passes and static trees by rows (drey tune --json)
    draw.py model MODEL.json -o PICTURE.svg      passes and their limits by rows (drey bench
                                                 model --json)

Each point is the median over a group's prompts, of each prompt the median of its rounds."""
import argparse
import csv
import json
import math
import os
import sys
from xml.sax.saxutils import escape

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench"))
import edge  # noqa: E402
import exits  # noqa: E402
from record import median  # noqa: E402
from texts import medians  # noqa: E402

LIGHT = {"a": "#1a7f37", "b": "#2f6fde", "c": "#cf222e", "d": "#6e7781", "e": "#bf8700", "f": "#8250df",
         "g": "#148c96", "h": "#d2691e"}
DARK = {"a": "#3fb950", "b": "#58a6ff", "c": "#f85149", "d": "#8b949e", "e": "#d29922", "f": "#bc8cff",
        "g": "#39c5cf", "h": "#f0883e"}


def colours(of):
    return " ".join(f".{c} {{ stroke: {v}; fill: {v} }}" for c, v in of.items())


STYLE = f"""<style>
  text {{ font: 13px system-ui, sans-serif; fill: #24292f }} .small {{ font-size: 11px }}
  .title {{ font-size: 15px; font-weight: 600 }} .faint {{ fill: #57606a }}
  .paper {{ fill: #ffffff }} .grid {{ stroke: #d8dee4; fill: none }}
  {colours(LIGHT)}
  @media (prefers-color-scheme: dark) {{
    text {{ fill: #e6edf3 }} .faint {{ fill: #8b949e }} .paper {{ fill: #0d1117 }} .grid {{ stroke: #30363d }}
    {colours(DARK)}
  }}
  .line {{ fill: none; stroke-width: 2.5; stroke-linejoin: round }} .dashed {{ stroke-dasharray: 7 5 }}
  text, rect {{ stroke: none !important }}
</style>"""


class Picture:
    def __init__(self, width, height, label):
        self.out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
                    f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{escape(label)}">', STYLE,
                    f'<rect class="paper" width="{width:.0f}" height="{height:.0f}"/>']

    def text(self, x, y, words, style="", anchor="start"):
        self.out.append(f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
                        f'{escape(str(words))}</text>')

    def bar(self, style, x, y, width, height):
        self.out.append(f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{max(width, .5):.1f}" '
                        f'height="{height:.1f}"/>')

    def grid(self, path):
        self.out.append(f'<path class="grid" d="{path}"/>')

    def line(self, style, points):
        self.out.append(f'<polyline class="line {style}" points="' +
                        " ".join(f"{x:.1f},{y:.1f}" for x, y in points) + '"/>')

    def dots(self, style, points, r=3.5):
        self.out += [f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="{r}"/>' for x, y in points]

    def write(self, path):
        with open(path, "w") as f:
            f.write("\n".join([*self.out, "</svg>", ""]))


class Plot:
    """Axes over a rectangle: the vertical one logarithmic or from 0 on, the horizontal one by
    places."""

    def __init__(self, picture, box, low, high, logarithmic):
        self.p, (self.left, self.top, self.right, self.bottom) = picture, box
        self.scale = math.log10 if logarithmic else float
        self.low, self.high = self.scale(low), self.scale(high)
        decade = 10.0 ** math.floor(math.log10(high))
        step = decade / (5 if high < 1.5 * decade else 2 if high < 4 * decade else 1)
        ticks = [d * 10.0 ** e for e in range(-9, 10) for d in (1, 2, 5)] if logarithmic else \
            [i * step for i in range(11)]
        for value in ticks:
            if self.low <= self.scale(value) <= self.high:
                picture.grid(f"M{self.left} {self.y(value):.1f}H{self.right}")
                picture.text(self.left - 8, self.y(value) + 4, f"{value:g}", "faint", "end")

    def y(self, value):
        return self.bottom - (self.scale(value) - self.low) / (self.high - self.low) * (self.bottom - self.top)

    def place(self, i, n):
        return self.left + i / n * (self.right - self.left)

    def rows(self, rows, most=64):
        """The place of a pass of so many rows, of which the axis is logarithmic."""
        return self.place(math.log2(rows), math.log2(most))

    def label(self, x, words):
        self.p.text(x, self.bottom + 20, words, "", "middle")


def read(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def budget_words(budget):
    return f"{budget:g} MiB" if budget else "in memory"


# ---- Speeds as bars

HEAD, BAR = 58, 20


def put_bars(p, sides, x, y, width, what):
    """sides: [(name, class, speed)]; their names are left of x."""
    most = max([s for _, _, s in sides if s > 0], default=1)
    p.text(x, y + 46, what, "faint")
    for i, (_, style, speed) in enumerate(sides):
        if speed > 0:  # not of an oracle, nor of what nobody measured
            long = speed / most * (width - 50)
            p.bar(style, x, y + HEAD + i * BAR + 3, long, BAR - 6)
            p.text(x + long + 6, y + HEAD + i * BAR + 14, f"{speed:.3g}", "small")


def put_names(p, sides, x, y):
    for i, (name, _, _) in enumerate(sides):
        p.text(x, y + HEAD + i * BAR + 14, name, "small", "end")


def draw_edge(args):
    cases = edge.cases_of(read(args.file))
    sides = {key: list(dict.fromkeys(r["side"] for r in of)) for key, of in cases.items()}
    groups = {key: list(dict.fromkeys(r["group"] for r in of)) for key, of in cases.items()}
    p = Picture(230 + 380 * max(len(g) for g in groups.values()),
                sum(HEAD + 20 + BAR * len(s) for s in sides.values()), "speed of each policy")
    y = 0
    for (target, draft, budget), of in cases.items():
        lossy = {r["side"] for r in of if r["lossy"] == "yes"}
        key, speeds = (target, draft, budget), medians(of, "tokens_per_s")
        p.text(20, y + 26, f"{target}, {budget_words(budget)}, draft {draft}", "title")
        for g, group in enumerate(groups[key]):
            bars = [(s + (" (lossy)" if s in lossy else ""),
                     "a" if s == "optimal" else "b" if s.startswith("optimal") else
                     "c" if s.startswith("llama") else "e" if s in lossy else "d",
                     median(list(speeds.get((s, group), {}).values()))) for s in sides[key]]
            put_bars(p, bars, 210 + 380 * g, y, 320, f"{group}, tokens/s (median)")
        put_names(p, bars, 200, y)
        y += HEAD + 20 + BAR * len(sides[key])
    return p


def draw_exits(args):
    series = {"oracle": "e", "fast": "a", "exact": "c"}
    cases = exits.cases_of(read(args.file))
    heights = [max(BAR * len({r["side"] for r in of}), 150) for of in cases.values()]
    p, y = Picture(1040, sum(h + HEAD + 44 for h in heights), "early exits"), 0
    for ((target, draft, budget, group), of), height in zip(cases.items(), heights):
        p.text(20, y + 26, f"{target}, {budget_words(budget)}, draft {draft}: {group}", "title")
        bars = [(side + (" (lossy)" if f["lossy"] else ""), series.get(side, "b" if f["lossy"] else "d"),
                 f["tokens_per_s"]) for side, f in exits.figures_of(of).items()]
        put_bars(p, bars, 210, y, 280, "tokens/s (median)")
        put_names(p, bars, 200, y)
        put_layers(p, of, series, 560, y, height)
        y += HEAD + height + 44
    return p


def put_layers(p, case, series, x, y, height):
    """Draws, for each series, the share of tokens that left after each layer."""
    left = {}
    for name in series:
        rows = [r for r in case if r["side"] == name]
        total = sum(float(r["counted"]) for r in rows)
        for pair in (pair for r in rows for pair in r["by_layer"].split(";") if pair):
            layer, n = pair.split(":")
            of = left.setdefault(name, {})
            of[int(layer)] = of.get(int(layer), 0) + float(n) / total
    if not left:
        return
    last = max(int(r["n_layers"]) for r in case)
    first = min(layer for of in left.values() for layer, share in of.items() if share > .001)
    n, at, bottom = last - first + 1, x + 230, y + HEAD + height
    width = 460 / n
    p.text(x, y + 46, "tokens that left after a layer:", "faint")
    for i, (name, of) in enumerate(left.items()):
        p.bar(series[name], at, y + 37, 10, 10)
        p.text(at + 14, y + 46, name, "small")
        at += 70
        for layer, share in of.items():
            if layer >= first:
                p.bar(series[name], x + (layer - first) * width + i * width / 4, bottom - share * height,
                      width / 4, share * height)
    p.grid(f"M{x} {bottom:.1f}H{x + 460}")
    for layer in range(first, last + 1):
        if n <= 12 or layer == last or layer % (n // 10) == 0:
            p.text(x + (layer - first + .4) * width, bottom + 16, layer, "small", "middle")


# ---- Lines

def draw_budgets(args):
    rows = [r for r in read(args.file) if r["target"] == args.target and r["draft"] in ("none", args.draft)]
    found = {}  # (name, class, group): {budget: speed}
    for budget in {float(r["budget_mib"]) for r in rows}:
        of = medians([r for r in rows if float(r["budget_mib"]) == budget], "tokens_per_s")
        for (side, group), prompts in of.items():
            for name, style, mine in (("drey", "a", side == "optimal"), ("drey, no draft", "b", side == "spl"),
                                      ("llama.cpp", "c", side.startswith("llama.cpp"))):
                if mine and median(list(prompts.values())) > 0:
                    points = found.setdefault((name, style, group), {})
                    points[budget] = max(points.get(budget, 0), median(list(prompts.values())))
    if not found:
        raise SystemExit(f"draw: {args.file} has nothing of {args.target} with {args.draft}")
    first_group = next(r["group"] for r in rows)
    budgets = sorted({b for of in found.values() for b in of}, key=lambda b: b or math.inf)
    speeds = [v for of in found.values() for v in of.values()]
    p = Picture(760, 420, "tokens per second by memory budget")
    p.text(64, 26, f"{args.target}: tokens/s by memory budget", "title")
    p.text(64, 46, "medians of each group of prompts; logarithmic", "faint")
    plot, labels = Plot(p, (64, 60, 584, 368), min(speeds) / 1.4, max(speeds) * 1.4, True), []
    for b in budgets:
        plot.label(plot.place(budgets.index(b) + .5, len(budgets)), budget_words(b))
    for (name, style, group), of in sorted(found.items()):
        points = [(plot.place(budgets.index(b) + .5, len(budgets)), plot.y(of[b])) for b in budgets if b in of]
        p.line(style + ("" if group == first_group else " dashed"), points)
        p.dots(style, points)
        labels.append([points[-1][1], f"{name}, {group}", style])
    labels.sort()
    for i, label in enumerate(labels):  # one below the other
        label[0] = max(label[0], labels[i - 1][0] + 17 if i else 0)
        p.text(592, label[0] + 4, label[1], label[2])
    return p


def draw_tune(args):
    with open(args.file) as f:
        report = json.load(f)
    trees, pass_ms = report["trees"], [1e3 * s for s in report["pass_s"]]
    p = Picture(640, 588 if trees else 324, "passes and trees by rows")
    p.text(64, 26, report["target"], "title")
    p.text(64, 44, f"draft: {report['draft']}", "faint")
    plot = Plot(p, (64, 84, 616, 284), 0, 1.05 * max(pass_ms), False)
    p.text(64, 74, "a pass of so many rows, ms", "faint")
    p.line("c", [(plot.rows(i), plot.y(s)) for i, s in enumerate(pass_ms, 1)])
    if trees:
        speeds = Plot(p, (64, 348, 616, 548), 0, 1.1 * max(t["tokens_per_s"] for t in trees), False)
        p.text(64, 338, "tokens/s of the best tree of so many rows, and tokens per pass", "faint")
        points = [(speeds.rows(t["rows"]), speeds.y(t["tokens_per_s"])) for t in trees]
        p.line("a", points)
        p.dots("a", points)
        p.dots("a", [points[report["best"]]], 6)
        for (x, y), t in zip(points, trees):
            p.text(x, y + 20, f"{t['tokens']:.2f}", "small", "middle")
    for of in (plot, speeds) if trees else (plot,):
        for rows in (1, 2, 4, 8, 16, 32, 64):
            of.label(of.rows(rows), rows)
    return p


def draw_model(args):
    """Both axes logarithmic: a limit of bandwidth is level, one of operations has a slope of
    one."""
    with open(args.file) as f:
        report = json.load(f)
    passes = report["passes"]
    times = [1e3 * q[k] for q in passes for k in ("pass_s", "limit_s")]
    widest = max(2, *(q["rows"] for q in passes))
    p = Picture(760, 480, "time of a pass by rows")
    p.text(78, 24, args.title or os.path.basename(args.file), "title")
    p.text(78, 44, f"memory {report['memory_bytes_per_s'] / 1e9:.1f} GB/s, 8-bit peak "
                   f"{report['int8_ops_per_s'] / 1e12:.2f} TOPS, drey {report['version']}")
    p.text(407, 466, "ms of a pass by its rows; dashed: what the machine allows", "faint", "middle")
    plot = Plot(p, (78, 58, 736, 424), min(times) / 1.2, max(times) * 1.2, True)
    for i in range(int(math.log2(widest)) + 1):
        plot.label(plot.rows(2 ** i, widest), 2 ** i)
    for k, context in enumerate(dict.fromkeys(q["context"] for q in passes)):
        style, of = list(LIGHT)[k % len(LIGHT)], [q for q in passes if q["context"] == context]
        for key, dashed in (("limit_s", " dashed"), ("pass_s", "")):
            points = [(plot.rows(q["rows"], widest), plot.y(1e3 * q[key])) for q in of]
            p.line(style + dashed, points)
        p.dots(style, points, 3)
        p.text(92, 76 + 20 * k, f"after {context} tokens", style)
    return p


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    draw = {"edge": draw_edge, "budgets": draw_budgets, "exits": draw_exits, "tune": draw_tune,
            "model": draw_model}
    p.add_argument("what", choices=draw)
    p.add_argument("file")
    p.add_argument("-o", "--output", required=True)
    p.add_argument("--title", help="of model (the file's name)")
    p.add_argument("--target", default="wide6b.gguf", help="of budgets")
    p.add_argument("--draft", default="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", help="of budgets")
    args = p.parse_args()
    draw[args.what](args).write(args.output)


if __name__ == "__main__":
    main()
