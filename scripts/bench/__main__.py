#!/usr/bin/env python3
"""Benchmarks of drey, each next to the other side from the same run.

    python3 scripts/bench SUBCOMMAND [options]      (SUBCOMMAND --help says what it measures)

    versus    against llama.cpp, ik_llama.cpp or both: in memory, and in less memory than the model
    stream    what drey makes of a disk, against what the disk gives
    budget    whether the process stays within --memory, in memory cgroups
    sessions  several sessions in one engine against one, and against llama-server's slots
    packing   streamed passes without a sidecar against with one
    against   another commit of drey
    answers   early exits: how many questions of public data sets are answered right with and
              without them, and how near texts stay
    edge      every policy of drey, with parts left out, and llama.cpp with and without its own
              speculation
    equal     how many texts stay the same: drey verify, and llama.cpp and ik_llama.cpp with
              threads, batches and speculation
    exits     early exits, their parts, and an oracle
    units     dividing passes between units
    thresholds  the papers' alpha, its factor, drafting ahead and bld, by counts
    waits     from traces: when tokens were there, useless verifications, passes by rows
    forms     JSON of a schema against free text
    replay    mixtures of experts that are routed as published traces were

The sides take turns, so that a machine whose speed drifts slows both; a ratio is taken within a
round and its median reported, above 1 where drey is better. Tables are Markdown. The CSV file
(--csv) has every single value: case, side, round, metric, value; its rows of case "run" name the
machine, the commits and the date. A machine that does something else meanwhile gives figures that
mean nothing.
"""
import argparse
import os
import sys
import tempfile

import against
import answers
import budget
import edge
import equal
import exits
import forms
import packing
import replay
import sessions
import stream
import thresholds
import units
import versus
import waits
from record import Record
from sides import CACHE, HERE, Drey, Stop

COMMANDS = {m.__name__: m for m in (versus, stream, budget, sessions, packing, against, edge, equal,
                                      exits, units, thresholds, waits, answers, forms, replay)}


def parser():
    p = argparse.ArgumentParser(prog="scripts/bench", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = p.add_subparsers(dest="command", metavar="SUBCOMMAND", required=True)
    for name, module in COMMANDS.items():
        c = commands.add_parser(name, description=module.__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
        c.add_argument("--drey", metavar="FILE", default=os.path.join(HERE, "build/cli/drey"),
                       help="the command to measure (default build/cli/drey)")
        c.add_argument("--models", metavar="DIR", default=CACHE,
                       help="where the models are (default $DREY_MODELS, else the cache directory)")
        c.add_argument("--threads", metavar="N", type=int, default=2, help="of all sides (default 2)")
        c.add_argument("--csv", metavar="FILE", help="every single value")
        module.add_arguments(c)
    return p


def main():
    args = parser().parse_args()
    with tempfile.TemporaryDirectory() as folder:
        drey = Drey(args.drey, args.models, args.threads, folder)
        record = Record(args.csv)
        if not getattr(args, "show", False):  # the rows come from elsewhere
            record.about_machine()
            record.about("drey", version=drey.version(), threads=args.threads)
        try:
            return COMMANDS[args.command].run(args, drey, record) or 0
        except Stop as stop:
            print(f"bench {args.command}: {stop}", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
