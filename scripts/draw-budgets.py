#!/usr/bin/env python3
"""Draws tokens/s by memory budget for drey and llama.cpp from results of drey bench edge (scripts/bench edge).

    draw-budgets.py RESULTS.csv -o PICTURE.svg [--target FILE] [--draft FILE]

Each point is the median over a group's prompts, of each prompt the median of its rounds; of the sides
whose names begin with "llama.cpp" the best at each point is drawn. The scale of speeds is logarithmic."""
import argparse
import csv
import math
import statistics
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 64, 176, 60, 52
STYLE = """<style>
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-size: 15px; font-weight: 600 } .faint { fill: #57606a }
  .paper { fill: #ffffff } .grid { stroke: #d8dee4 }
  .line { fill: none; stroke-width: 2.5; stroke-linejoin: round }
  .a { stroke: #1a7f37; fill: #1a7f37 } .b { stroke: #2f6fde; fill: #2f6fde } .c { stroke: #cf222e; fill: #cf222e }
  .line { fill: none } .chat { stroke-dasharray: 7 5 } text.a, text.b, text.c { stroke: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .faint { fill: #8b949e } .paper { fill: #0d1117 } .grid { stroke: #30363d }
    .a { stroke: #3fb950; fill: #3fb950 } .b { stroke: #58a6ff; fill: #58a6ff } .c { stroke: #f85149; fill: #f85149 }
    .line { fill: none }
  }
</style>"""


def read(path, target, draft):
    """{(side, group, budget): median}, budgets in MiB, 0: in memory."""
    values = {}
    with open(path, newline="") as f:
        for row in csv.DictReader(f):
            if row["target"] == target and row["draft"] in ("none", draft):
                key = (row["side"], row["group"], float(row["budget_mib"]))
                values.setdefault(key, {}).setdefault(row["prompt"], []).append(float(row["tokens_per_s"]))
    return {k: statistics.median(statistics.median(rounds) for rounds in prompts.values())
            for k, prompts in values.items()}


def lines(medians):
    """[(name, class, group, {budget: tokens/s})]"""
    drawn = []
    for name, style, sides in (("drey", "a", lambda s: s == "optimal"),
                               ("drey, no draft", "b", lambda s: s == "spl"),
                               ("llama.cpp", "c", lambda s: s.startswith("llama.cpp"))):
        for group in dict.fromkeys(g for _, g, _ in medians):
            points = {}
            for (side, of, budget), value in medians.items():
                if sides(side) and of == group and value > 0:
                    points[budget] = max(points.get(budget, 0), value)
            if points:
                drawn.append((name, style, group, points))
    return drawn


def draw(drawn, target):
    budgets = sorted({b for _, _, _, points in drawn for b in points}, key=lambda b: b or math.inf)
    speeds = [v for _, _, _, points in drawn for v in points.values()]
    low, high = math.log10(min(speeds)) - .15, math.log10(max(speeds)) + .15

    def x(budget):
        return LEFT + (budgets.index(budget) + .5) / len(budgets) * (WIDTH - LEFT - RIGHT)

    def y(speed):
        return HEIGHT - BOTTOM - (math.log10(speed) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
           f'height="{HEIGHT}" role="img" aria-label="tokens a second by memory budget">', STYLE,
           f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}"/>',
           f'<text class="title" x="{LEFT}" y="26">{escape(target)}: tokens/s by memory budget</text>',
           f'<text class="faint" x="{LEFT}" y="46">medians of each group of prompts; logarithmic</text>']
    for decade in range(math.floor(low), math.ceil(high) + 1):
        for digit in (1, 2, 5):
            speed = digit * 10.0 ** decade
            if low <= math.log10(speed) <= high:
                out.append(f'<path class="grid" d="M{LEFT} {y(speed):.1f} H{WIDTH - RIGHT}"/>'
                           f'<text class="faint" x="{LEFT - 8}" y="{y(speed) + 4:.1f}" '
                           f'text-anchor="end">{speed:g}</text>')
    for b in budgets:
        name = f"{b:.0f} MiB" if b else "in memory"
        out.append(f'<text x="{x(b):.1f}" y="{HEIGHT - BOTTOM + 22}" text-anchor="middle">{name}</text>')
    labels = []
    for name, style, group, points in drawn:
        chat = " chat" if group != drawn[0][2] else ""
        places = [(x(b), y(points[b])) for b in budgets if b in points]
        out.append(f'<polyline class="line {style}{chat}" points="' +
                   " ".join(f"{a:.1f},{b:.1f}" for a, b in places) + '"/>')
        out += [f'<circle class="{style}" cx="{a:.1f}" cy="{b:.1f}" r="3.5"/>' for a, b in places]
        labels.append([places[-1][1], f"{name}, {group}", style])
    labels.sort()
    for i, label in enumerate(labels):  # one below the other
        label[0] = max(label[0], labels[i - 1][0] + 17 if i else 0)
    for at, name, style in labels:
        out.append(f'<text class="{style}" x="{WIDTH - RIGHT + 8}" y="{at + 4:.1f}">{escape(name)}</text>')
    return "\n".join(out + ["</svg>", ""])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("results")
    p.add_argument("-o", "--output", required=True)
    p.add_argument("--target", default="wide6b.gguf")
    p.add_argument("--draft", default="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")
    args = p.parse_args()
    drawn = lines(read(args.results, args.target, args.draft))
    if not drawn:
        raise SystemExit(f"draw-budgets: {args.results} has nothing of {args.target} with {args.draft}")
    with open(args.output, "w") as f:
        f.write(draw(drawn, args.target))


if __name__ == "__main__":
    main()
