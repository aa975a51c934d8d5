"""Several sessions in one engine against one, and against llama-server with as many slots.

Decoding without a draft, tokens/s of all sessions together: wide6b in a memory cgroup of 2560 MiB (root),
where a pass's reads serve all sessions, and target in memory. With --peer, a llama-server with as many
slots (-np, continuous batching) decodes as many requests at once; its rate is that of the time
in which all of them write, counted from the tokens as they arrive. "One" is an engine that is open for
one session; one session in an engine that is open for all has less room for weights and is shown apart."""
import json
import threading
import time
import urllib.request

from llama_server import llama_server
from record import figure, spread, table
from sides import TARGET, WIDE, Peer, Stop, commit_of

PARTS = ("limit", "memory", "server")
LIMIT = 2560
TOPICS = ("squirrels", "rivers", "bridges", "bread", "clocks", "maps", "bees", "glass")
TOTAL = "decode_tokens_per_s"  # of all sessions together
ONE = "session_tokens_per_s"   # of one alone in an engine that is open for all


def add_arguments(p):
    p.add_argument("--peer", metavar="LLAMA_CPP_BIN_DIR", help="a folder with llama-server")
    p.add_argument("--parts", default=",".join(PARTS), help="some of: " + ",".join(PARTS))
    p.add_argument("--sessions", type=int, default=8, help="at once (default 8)")
    p.add_argument("--tokens", type=int, default=128, help="of each in memory (default 128)")
    p.add_argument("--limit-tokens", type=int, default=16, help="of each in the limit (default 16)")
    p.add_argument("--rounds", type=int, default=5, help="turns of each side (default 5)")


def run(args, drey, record):
    parts = args.parts.split(",")
    for part in parts:
        if part not in PARTS:
            raise Stop(f"no part {part!r}; there are: " + ", ".join(PARTS))
    peer = None
    if args.peer and "server" in parts:
        peer = Peer(args.peer, args.threads)
        record.about(peer.name, commit=commit_of(peer.folder))
    many, rows = f"drey-{args.sessions}", []
    for i in range(args.rounds):
        print(f"round {i + 1} of {args.rounds}", flush=True)
        for n in (1, args.sessions):
            if "limit" in parts:
                record.note("wide6b-2560M", f"drey-{n}", i, **measure(
                    drey, WIDE, n, args.limit_tokens, LIMIT))
            if "memory" in parts:
                record.note("target-memory", f"drey-{n}", i, **measure(drey, TARGET, n, args.tokens))
        if peer:
            record.note("target-memory", peer.name, i,
                        decode_tokens_per_s=serve(args, drey.model(TARGET), peer))
    for case in ("wide6b-2560M", "target-memory"):
        together = [a / b for a, b in zip(record.of(case, many, TOTAL).values(),
                                          record.of(case, many, ONE).values())]
        for other in ("drey-1", peer.name if peer else None):
            ratios = record.ratios(case, TOTAL, many, other)
            if ratios:
                rows.append([case, figure(record.median(case, many, TOTAL)), other,
                             figure(record.median(case, other, TOTAL)), spread(ratios),
                             spread(together if other == "drey-1" else [])])
    table("Tokens/s of all sessions together", [
        "case", many, "other", "tokens/s", "ratio", "over one in the same engine"], rows)


def measure(drey, name, n, tokens, limit=None):
    """Without --sessions one session decodes, so that a drey that lacks the option can be one side."""
    more = ["--sessions", str(n)] if n > 1 else []
    return drey.bench_model(drey.model(name), limit, prompt=16, decode=tokens, more=more)


# ---- llama-server

def serve(args, model, peer):
    context = args.sessions * (args.tokens + 64)
    command = [f"{peer.folder}/llama-server", "-m", model, "-t", peer.threads, "-tb", peer.threads,
               "-np", str(args.sessions), "-c", str(context), "-cb"]
    with llama_server(command, peer.env) as address:
        return ask_all(args, f"{address}/completion")


def ask_all(args, url):
    """Tokens/s of all together, from the last request's first token to the first one's last."""
    arrivals = [[] for _ in range(args.sessions)]

    def ask(i):
        body = json.dumps({"prompt": f"Write a long text about {TOPICS[i % len(TOPICS)]}.",
                           "n_predict": args.tokens, "temperature": 0, "ignore_eos": True,
                           "stream": True, "cache_prompt": False}).encode()
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            for line in answer:
                if line.startswith(b"data:") and b'"stop":false' in line.replace(b" ", b""):
                    arrivals[i].append(time.monotonic())

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(args.sessions)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if any(len(a) < args.tokens // 2 for a in arrivals):
        raise Stop("llama-server did not write what it was asked for")
    start, end = max(a[0] for a in arrivals), min(a[-1] for a in arrivals)
    written = sum(start < t <= end for a in arrivals for t in a)
    return written / (end - start)
