"""Waits of a user, from the traces that drey run --trace writes: when the 64th, 128th and 256th
token were there, useless verifications, long waits, the speed at which trees grow, and what a
verification takes by its rows.

A verification is useless if guesses were submitted and none was right; it finds an error if the
target went another way than the submitted guesses below the last right one. Then what was drafted
meanwhile is lost and the user waits longer (EdgeLLM IV-F: a prolonged wait)."""
import json

from record import figure, median, table
from sides import Stop

MILESTONES = (64, 128, 256)
WAITS, ACCEPTED = 0, 2  # fates of nodes: 0 was not submitted, 1 was, 2 is right
# Columns of results that of_trace fills in.
COLUMNS = [*(f"token_{n}_s" for n in MILESTONES), "useless", "errors", "verified", "nodes_per_s"]


def add_arguments(p):
    p.add_argument("traces", metavar="TRACE", nargs="+", help="what drey run --trace wrote")


def events_of(path):
    """{name: events}, or Stop."""
    try:
        with open(path) as f:
            events = json.load(f)["traceEvents"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise Stop(f"{path} is no trace of drey run: {error}")
    found = {}
    for e in events:
        if e.get("ph") == "X":
            found.setdefault(e["name"], []).append(e)
    return found


def outcome(tree):
    """(guesses were submitted, one of them was right, an error was found) of a turn's nodes: text,
    parent, confidence, rank, fate; the root first."""
    submitted = [i for i, node in enumerate(tree) if i and node[4] != WAITS]
    right = [i for i in submitted if tree[i][4] == ACCEPTED]
    last = max(right, default=0)
    return bool(submitted), bool(right), any(tree[i][1] == last for i in submitted)


def of_trace(path):
    """COLUMNS of a text; a milestone that it did not reach is missing."""
    events = events_of(path)
    turns = sorted(events.get("turn", []), key=lambda e: e["ts"])
    if not turns or turns[0]["args"]["turn"]:  # or its beginning was not kept
        return {}
    found, written = {}, 1  # the prompt's pass gave the first token
    for e in turns:
        written += e["args"]["written"]
        for n in MILESTONES:
            if written >= n:
                found.setdefault(f"token_{n}_s", (e["ts"] + e["dur"] - turns[0]["ts"]) / 1e6)
    outcomes = [outcome(e["args"]["tree"]) for e in turns]
    found["verified"] = sum(guessed for guessed, _, _ in outcomes)
    found["useless"] = sum(guessed and not right for guessed, right, _ in outcomes)
    found["errors"] = sum(error for _, _, error in outcomes)
    steps = events.get("draft", [])
    seconds = sum(e["dur"] for e in steps) / 1e6
    found["nodes_per_s"] = sum(e["args"]["nodes"] for e in steps) / seconds if seconds else 0
    return found


def with_draft(verify, steps):
    """Returns whether the draft worked while that pass was under way."""
    return any(s["ts"] < verify["ts"] + verify["dur"] and verify["ts"] < s["ts"] + s["dur"] for s in steps)


def verifications(paths):
    """{rows: ([seconds of passes alone], [while the draft worked])}"""
    found = {}
    for path in paths:
        events = events_of(path)
        for v in events.get("verify", []):
            both = found.setdefault(v["args"]["rows"], ([], []))
            both[with_draft(v, events.get("provisional", []))].append(v["dur"] / 1e6)
    return found


def run(args, drey, record):
    lines = []
    for path in args.traces:
        got = of_trace(path)
        if not got:
            raise Stop(f"{path} does not have a text's first turns; write a text of 2 to some 1,000 tokens")
        share = {k: got[k] / got["verified"] if got["verified"] else float("nan") for k in ("useless", "errors")}
        lines.append([path, *(figure(got.get(f"token_{n}_s")) for n in MILESTONES), str(got["verified"]),
                      figure(share["useless"]), figure(share["errors"]), figure(got["nodes_per_s"])])
    table("Waits", ["trace", *(f"token {n}, s" for n in MILESTONES), "verifications with guesses",
                    "useless, share", "with an error, share", "nodes drafted per s"], lines)
    table("Verifications, ms", ["rows", "passes", "alone", "with the draft at work"], [
        [str(rows), str(len(alone) + len(both)), figure(1e3 * median(alone)), figure(1e3 * median(both))]
        for rows, (alone, both) in sorted(verifications(args.traces).items())])
