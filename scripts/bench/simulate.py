#!/usr/bin/env python3
"""Simulates what several units of a machine that is not here would make of drafting with heads
(Ghidorah, III).

    simulate.py MACHINE.json [--json FILE]   (the paper's machine: docs/lab/machines/jetson-nx.json)

The machine is a table of what each unit takes alone: for passes of each width, all matrices
("linear"), attention to the cache for each position in it ("dense"), and attention of the rows to
each other where only the pairs that count are computed ("sparse"). "contention" is the factor of
each time while another unit works as well. The first unit is the one with high parallelism, the
last the one for what is sparse. Times are in any one unit of time; speeds are in tokens of plain
decoding on the first unit.

    sequential   a token per pass, on the first unit
    one unit     a tree per pass, on the first unit
    even split   tensor parallelism: equal parts of columns, rows and heads, partial sums added;
                 what is sparse is computed as dense
    alone ratio  the same, in proportion to the units' speeds alone (EdgeNN)
    static       columns alone are split, as a search under contention finds; all dense attention on
                 the first unit, all sparse on the last (III-B)
    dynamic      the same, and attention's boundary is searched as well"""
import argparse
import json
import math
import sys

STRATEGIES = ("sequential", "one unit", "even split", "alone ratio", "static", "dynamic")
GOLDEN = 0.6180339887498949


# ---- Searching, as drey tune --units does on a machine that is here (tune/search.c)

def search_least(measure, low, high, start, tolerance):
    """(place, seconds) with the least seconds that were seen: down from start in steps that double,
    then by golden section."""
    seen = []

    def look(at):
        seen.append((measure(at), at))
        return seen[-1][0]

    def go_down(here, at_here, step):
        before, moved = here, False
        while True:
            end = max(low, min(high, here + step))
            if end == here:
                return moved, before, end
            at_end = look(end)
            if at_end >= at_here:
                return moved, before, end
            before, here, at_here, step, moved = here, end, at_end, 2 * step, True

    step, start = 0.05 * (high - low), max(low, min(high, start))
    at_start = look(start)
    moved, down, up = go_down(start, at_start, step)
    if not moved:
        moved, before, down = go_down(start, at_start, -step)
        up = before if moved else up
    if up - down > tolerance:
        golden_section(look, down, up, tolerance)
    seconds, at = min(seen, key=lambda s: s[0])
    return at, seconds


def golden_section(look, a, b, tolerance):
    x, y = b - GOLDEN * (b - a), a + GOLDEN * (b - a)
    at_x, at_y = look(x), look(y)
    while True:
        left = at_x <= at_y
        a, b = (a, y) if left else (x, b)
        if b - a <= tolerance:
            return
        if left:
            y, at_y, x = x, at_x, b - GOLDEN * (b - a)
            at_x = look(x)
        else:
            x, at_x, y = y, at_y, a + GOLDEN * (b - a)
            at_y = look(y)


def shares_from_alone(alone):
    speed = sum(1 / s for s in alone)
    return [1 / s / speed for s in alone]


def shares_search(measure, alone):
    """(shares, seconds): two units at a time exchange a part of theirs, until a round over all
    pairs gains less than a hundredth. Where one unit alone is faster than all of them, it has
    all."""
    n, share = len(alone), shares_from_alone(alone)

    def exchange(i, k, seconds):
        both = share[i] + share[k]

        def divided(of_first):
            one = list(share)
            one[i] = of_first * both
            one[k] = both - one[i]
            return one

        if both <= 0:
            return share, seconds
        at, found = search_least(lambda x: measure(divided(x)), 0, 1, share[i] / both, 0.01)
        return (divided(at), found) if found < seconds else (share, seconds)

    best = measure(share)
    while True:
        before = best
        for i in range(n):
            for k in range(i + 1, n):
                share, best = exchange(i, k, best)
        if n <= 2 or best >= 0.99 * before:
            break
    for u, s in enumerate(alone):
        if s < best:
            share, best = [float(i == u) for i in range(n)], s
    return share, best


# ---- A pass

class Pass:
    """A pass of the w-th width after so many positions of context, divided as the strategy says."""

    def __init__(self, machine, strategy, w, positions):
        self.units, self.positions = machine["units"], positions
        self.w = w = 0 if strategy == "sequential" else w
        self.rows, self.boundary, n = machine["widths"][w], 0.0, len(self.units)
        alone = [u["linear"][w] for u in self.units]
        if strategy in ("sequential", "one unit"):
            self.share = [1.0] + [0.0] * (n - 1)
            self.linear, self.attention, extra = alone[0], self.masked(self.units[0]), 0
        elif strategy in ("even split", "alone ratio"):
            self.share = shares_from_alone([1] * n if strategy == "even split" else alone)
            self.linear = self.linear_of(self.share)
            self.attention = self.together([s * self.masked(u) for s, u in zip(self.share, self.units)])
            extra = machine["sync"] + machine["all_reduce_row"] * self.rows
        else:
            self.share, self.linear = shares_search(self.linear_of, alone)
            self.attention, extra = self.attention_at(0), machine["sync"]
            if strategy == "dynamic" and n > 1:
                self.boundary, self.attention = search_least(self.attention_at, -1, 1, 0, 0.01)
        self.seconds = self.linear + self.attention + (extra if n > 1 else 0)

    def together(self, left):
        """Returns when all are done that have so much to do, in seconds alone: slowed for as long
        as another one is at work as well."""
        left, now = list(left), 0.0
        while any(s > 0 for s in left):
            busy = sum(s > 0 for s in left)
            slowed = [u["contention"] if busy > 1 else 1 for u in self.units]
            next_s, first = min((s * c, i) for i, (s, c) in enumerate(zip(left, slowed)) if s > 0)
            now += next_s
            left = [s - next_s / c if s > 0 else s for s, c in zip(left, slowed)]
            left[first] = 0
        return now

    def linear_of(self, share):
        return self.together([s * u["linear"][self.w] for s, u in zip(share, self.units)])

    def masked(self, unit):
        """Attention of all rows to the context, and to each other as if all pairs counted."""
        return (self.positions + self.rows) * unit["dense"][self.w]

    def attention_at(self, boundary):
        """Above 0 so much of the dense part is the last unit's; below 0 so much of the sparse part
        the first one's, computed as dense."""
        to_last, to_first, last = max(boundary, 0), max(-boundary, 0), self.units[-1]
        alone = [0.0] * len(self.units)
        alone[0] = self.units[0]["dense"][self.w] * (
            (1 - to_last) * self.positions + to_first * self.rows)
        alone[-1] += ((1 - to_first) * last["sparse"][self.w] +
                      to_last * self.positions * last["dense"][self.w])
        return self.together(alone)


# ---- The file

def want(good, key, what):
    if not good:
        raise ValueError(f'"{key}" of the simulated machine should be {what}')


def number(x, least=-math.inf):
    return isinstance(x, (int, float)) and not isinstance(x, bool) and math.isfinite(x) and x >= least


def read(path):
    with open(path) as f:
        m = json.load(f)
    widths, units = m.get("widths"), m.get("units")
    want(isinstance(m.get("name"), str), "name", "a text")
    want(isinstance(widths, list) and all(isinstance(w, int) for w in widths) and widths[:1] == [1] and
         widths == sorted(set(widths)), "widths", "whole numbers that begin with 1 and ascend")
    want(number(m.get("context"), 0), "context", "a number of positions")
    want(isinstance(units, list) and 1 <= len(units) <= 4, "units", "a list of 1 to 4 units")
    for u in units:
        for key in ("linear", "dense", "sparse"):
            want(isinstance(u.get(key), list) and len(u[key]) == len(widths) and
                 all(number(x) and x > 0 for x in u[key]), key, "a list of a time for each width, above 0")
        want(number(u.get("contention"), 1), "contention", "1 or more")
    for key in ("sync", "all_reduce_row"):
        want(number(m.get(key), 0), key, "0 or more")
    sets = m.get("acceptance")
    want(isinstance(sets, dict) and sets and all(
        len(t) == len(widths) and all(number(x, 1) for x in t) for t in sets.values()),
        "acceptance", "lists of tokens by width, from 1 on")
    want(not m.get("contexts") or m.get("attention_width") in widths, "attention_width", "one of the widths")
    for c in m.get("published", []):
        want(c.get("set") in sets and c.get("strategy") in STRATEGIES and number(c.get("value")) and
             ("against" not in c or c["against"] in STRATEGIES and c.get("from_width") in widths and
              c.get("to_width") in widths), "published",
             "a list of what, set, strategy and value, and where speeds are compared against, from_width "
             "and to_width")
    return m


# ---- What is shown

class Simulation:
    def __init__(self, machine):
        self.m, self.widths = machine, machine["widths"]
        self.passes = {s: [Pass(machine, s, w, machine["context"]) for w in range(len(self.widths))]
                       for s in STRATEGIES}

    def speed(self, tokens, strategy, w):
        """Over a token per pass on the first unit."""
        tokens = 1 if strategy == "sequential" else tokens[w]
        return tokens * self.passes["sequential"][0].seconds / self.passes[strategy][w].seconds

    def best_width(self, tokens, strategy):
        return max(self.widths, key=lambda w: self.speed(tokens, strategy, self.widths.index(w)))

    def claim(self, c):
        tokens = self.m["acceptance"][c["set"]]
        if "against" not in c:
            return self.best_width(tokens, c["strategy"])
        range_ = range(self.widths.index(c["from_width"]), self.widths.index(c["to_width"]) + 1)
        return sum(self.speed(tokens, c["strategy"], w) / self.speed(tokens, c["against"], w)
                   for w in range_) / len(range_)

    def figures(self):
        m = self.m
        attention = []
        for context in m.get("contexts", []):
            fixed, moved = (Pass(m, s, self.widths.index(m["attention_width"]), context)
                            for s in ("static", "dynamic"))
            attention.append({"context": context, "static_s": fixed.attention,
                              "dynamic_s": moved.attention, "boundary": moved.boundary})
        return {"widths": self.widths,
                "speed": {name: {s: [self.speed(tokens, s, w) for w in range(len(self.widths))]
                                 for s in STRATEGIES} for name, tokens in m["acceptance"].items()},
                "attention": attention,
                "published": [{"what": c["what"], "published": c["value"], "simulated": self.claim(c)}
                              for c in m.get("published", [])]}

    def show(self, figures, out):
        def put(*words):
            print(*words, file=out)

        m = self.m
        put(m["name"])
        for fit in m.get("fitted", []):
            put(f"fitted     {fit['name']} = {fit['value']:g}, from {fit['from']}")
        for note in m.get("assumed", []):
            put(f"assumed    {note}")
        for name, tokens in m["acceptance"].items():
            put(f"{name}, after {m['context']} positions: speed, plain decoding on "
                f"{m['units'][0]['name']} being 1")
            put(f"  {'rows':12}", *(f"{w:6}" for w in self.widths), "  best")
            put(f"  {'tokens':12}", *(f"{t:6.2f}" for t in tokens))
            for s in STRATEGIES[1:]:
                put(f"  {s:12}", *(f"{v:6.2f}" for v in figures["speed"][name][s]),
                    f"{self.best_width(tokens, s):6}")
        put("share of the matrices, searched under contention")
        for u, unit in enumerate(m["units"]):
            put(f"  {unit['name'][:12]:12}", *(f"{100 * p.share[u]:5.1f}%" for p in self.passes["dynamic"]))
        if figures["attention"]:
            put(f"attention of {m['attention_width']} rows, static against dynamic\n"
                "  positions     static    dynamic   gain  boundary")
        for a in figures["attention"]:
            put(f"  {a['context']:9} {a['static_s']:10.5f} {a['dynamic_s']:10.5f} "
                f"{a['static_s'] / a['dynamic_s']:6.2f} {a['boundary']:9.2f}")
        if figures["published"]:
            put("published, and the simulation")
        for c in figures["published"]:
            put(f"  {c['what']:58} {c['published']:6.4g} {c['simulated']:6.3g} "
                f"{100 * (c['simulated'] / c['published'] - 1):+5.1f} %")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("machine", metavar="MACHINE.json")
    p.add_argument("--json", metavar="FILE|-", help="the figures as JSON; -: to standard output")
    args = p.parse_args()
    try:
        simulation = Simulation(read(args.machine))
    except (OSError, ValueError, TypeError, AttributeError) as wrong:
        sys.exit(f"simulate: {args.machine}: {wrong}")
    figures = simulation.figures()
    simulation.show(figures, sys.stderr if args.json == "-" else sys.stdout)
    if args.json:
        with sys.stdout if args.json == "-" else open(args.json, "w") as out:
            json.dump(figures, out, indent=1)
            out.write("\n")


if __name__ == "__main__":
    main()
