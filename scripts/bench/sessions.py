"""Several sessions in one engine against one, and against llama-server with as many slots.

limit, memory, server: decoding without a draft, tokens/s of all sessions together: wide6b in a
        memory cgroup of 2560 MiB (root), where a pass's reads serve all sessions, and target in
        memory. With --peer, a llama-server with as many slots (-np, continuous batching) decodes as
        many requests at once; its rate is that of the time in which all of them write, counted from
        the tokens as they arrive. "One" is an engine that is open for one session; one session in
        an engine that is open for all has less room for weights and is shown apart.
texts:  drey serve writes the texts of --prompts one at a time, two, four and so on at a time, as
        many as --sessions says; a session that has finished a text takes the next one. Shown is
        what all write together, and how long each text waits. All have to be the texts of one
        session."""
import concurrent.futures
import time

from record import figure, median, spread, table
from server import ask, running, stream
from sides import MIB, TARGET, WIDE, Stop, chosen, peer_of
from texts import PROMPTS, path_of, read_prompts, request_of

PARTS = ("limit", "memory", "server", "texts")
LIMIT = 2560
TOPICS = ("squirrels", "rivers", "bridges", "bread", "clocks", "maps", "bees", "glass")
TOTAL = "decode_tokens_per_s"  # of all sessions together
ONE = "session_tokens_per_s"   # of one alone in an engine that is open for all
GREEDY = {"temperature": 0, "ignore_eos": True, "cache_prompt": False}


def add_arguments(p):
    p.add_argument("--peer", metavar="LLAMA_CPP_BIN_DIR", help="a folder with llama-server")
    p.add_argument("--parts", default="limit,memory,server", help="some of: " + ",".join(PARTS))
    p.add_argument("--sessions", type=int, default=8, help="at once (default 8)")
    p.add_argument("--tokens", type=int, default=128, help="of each in memory (default 128)")
    p.add_argument("--limit-tokens", type=int, default=16, help="of each in the limit (default 16)")
    p.add_argument("--rounds", type=int, default=5, help="turns of each side (default 5)")
    p.add_argument("--target", default=TARGET, help="texts: the model (default the 1.5B)")
    p.add_argument("--draft", default="none", help="texts: its draft (default none)")
    p.add_argument("--prompts", default=PROMPTS, help="texts: one JSON object on each line")
    p.add_argument("--memory", default="unlimited", help="texts: as for drey serve (unlimited)")
    p.add_argument("--context", default=1024, type=int, help="texts: positions (default 1024)")
    p.add_argument("--more", default="", metavar="WORDS", help="texts: further options of drey serve, in one word")


def run(args, drey, record):
    parts = chosen(args.parts, PARTS, "part")
    peer = peer_of(args.peer if "server" in parts else None, args.threads, record)
    for i in range(args.rounds if set(parts) != {"texts"} else 0):
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
    show(record, f"drey-{args.sessions}", peer)
    return write_texts(args, drey, record) if "texts" in parts else 0


def show(record, many, peer):
    rows = []
    for case in ("wide6b-2560M", "target-memory"):
        together = [a / b for a, b in zip(record.of(case, many, TOTAL).values(),
                                          record.of(case, many, ONE).values())]
        for other in ("drey-1", peer.name if peer else None):
            ratios = record.ratios(case, TOTAL, many, other)
            if ratios:
                rows.append([case, figure(record.median(case, many, TOTAL)), other,
                             figure(record.median(case, other, TOTAL)), spread(ratios),
                             spread(together if other == "drey-1" else [])])
    if rows:
        table("Tokens/s of all sessions together", [
            "case", many, "other", "tokens/s", "ratio", "over one in the same engine"], rows)


def measure(drey, name, n, tokens, limit=None):
    """Measures decoding; one session decodes without --sessions, so that a drey that lacks the
    option can be one side."""
    more = ["--sessions", str(n)] if n > 1 else []
    return drey.bench_model(drey.model(name), limit, prompt=16, decode=tokens, more=more)


# ---- Texts from a server

def write_one(address, prompt, tokens):
    """A text as it arrives: when each part came, what it is, and the last event with its
    timings."""
    path, text = request_of(prompt)
    times, parts, last = [], [], {}
    for now, event in stream(address, path, {**GREEDY, **text, "n_predict": tokens, "max_tokens": tokens}):
        if event.get("error"):
            raise Stop(f"the server said: {event['error']}")
        part = event["content"] if "content" in event else \
            "".join(c["delta"].get("content") or "" for c in event.get("choices", []))
        if part:
            times.append(now)
            parts.append(part)
        last = event if "timings" in event else last
    return {"times": times, "text": "".join(parts), **last}


def write_all(address, prompts, n, tokens):
    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        return list(pool.map(lambda p: write_one(address, p, tokens), prompts))


def write_texts(args, drey, record):
    prompts, tokens, alone, one, rows, status = read_prompts(args.prompts), args.tokens, None, None, [], 0
    counts = [1]
    while counts[-1] < args.sessions:
        counts.append(min(2 * counts[-1], args.sessions))
    for n in counts:
        with running([drey.program, "serve", "-m", drey.model(args.target), "-d", path_of(drey, args.draft),
                      "-t", drey.threads, "--memory", args.memory, "--sessions", str(n), "-c",
                      str(args.context), "--queue", str(len(prompts)), *args.more.split()]) as address:
            write_one(address, prompts[0], 2)  # the first pass loads
            start = time.monotonic()
            texts = write_all(address, prompts, n, tokens)
            seconds = max(t["times"][-1] for t in texts) - start
            session_mib = ask(address, "/props")["drey"]["session_bytes"] / MIB
        alone = alone or [t["text"] for t in texts]
        other = [p["id"] for p, t, a in zip(prompts, texts, alone) if t["text"] != a]
        for name in other:
            print(f"{name}: {n} sessions wrote another text than one")
            status = 1
        written = sum(t["timings"]["predicted_n"] for t in texts)
        total = {k: sum(t["drey"][k] for t in texts) for k in ("passes", "drafted", "accepted")}
        got = {"tokens_per_s": written / seconds, "seconds": seconds, "tokens": written,
               "tokens_per_pass": (written - len(texts)) / max(total["passes"], 1),
               "accepted_share": total["accepted"] / total["drafted"] if total["drafted"] else 0,
               "first_token_s": median([t["drey"]["first_token_s"] for t in texts]),
               "longest_gap_s": median([max((b - a for a, b in zip(t["times"], t["times"][1:])), default=0)
                                        for t in texts]), "session_mib": session_mib}
        one = one or got
        record.note("texts", f"drey-{n}", 0, **got)
        rows.append([str(n), figure(got["tokens_per_s"]), figure(got["tokens_per_s"] / one["tokens_per_s"]),
                     *(figure(got[k]) for k in ("tokens_per_pass", "accepted_share", "first_token_s",
                                                "longest_gap_s", "session_mib"))])
    table(f"{len(prompts)} texts of {tokens} tokens", [
        "sessions", "tokens/s together", "of one", "tokens per pass each", "accepted", "first token, s",
        "longest gap, s", "MiB each"], rows)
    if not status:
        print("\nall wrote the same texts")
    return status


# ---- llama-server

def serve(args, model, peer):
    """Tokens/s of all together, from the last request's first token to the first one's last."""
    command = [f"{peer.folder}/llama-server", "-m", model, "-t", peer.threads, "-tb", peer.threads,
               "-np", str(args.sessions), "-c", str(args.sessions * (args.tokens + 64)), "-cb"]
    prompts = [{"prompt": f"Write a long text about {TOPICS[i % len(TOPICS)]}."} for i in range(args.sessions)]
    with running(command, peer.env) as address:
        arrivals = [t["times"] for t in write_all(address, prompts, args.sessions, args.tokens)]
    if any(len(a) < args.tokens // 2 for a in arrivals):
        raise Stop("llama-server did not write what it was asked for")
    start, end = max(a[0] for a in arrivals), min(a[-1] for a in arrivals)
    return sum(start < t <= end for a in arrivals for t in a) / (end - start)
