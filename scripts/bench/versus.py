"""drey against llama.cpp, ik_llama.cpp or both, all taking turns (A B C A B C).

memory: everything in memory: prefill of 512, decoding of 128, passes of 1 to 64 rows. A peer that
        can repack weights when it loads them (ik_llama.cpp) runs both ways; the better one counts.
        A peer's pass of n rows is its prompt of n tokens, with logits for the last row alone;
        drey's has them for all.
limit:  less memory than the model: wide6b with its draft in 2560 MiB, target with its draft in 800
        MiB, each in its own memory cgroup with a cold page cache (root); llama.cpp maps the
        same file in the same limit. --memory is the limit over 1.05."""
from record import SPEEDS, WIDTHS, case_of, figure, spread, table
from sides import DRAFT, QUESTION, SMOL, TARGET, WIDE, Stop, chosen, peer_arguments, peers_of

PARTS = ("memory", "limit")
CASES = (("wide6b-2560M", WIDE, 2560), ("target-800M", TARGET, 800))
CHAT = f"""<|im_start|>system
You are a helpful assistant.<|im_end|>
<|im_start|>user
{QUESTION}<|im_end|>
<|im_start|>assistant
"""
# What a run in a limit took: title, metric, unit, digits.
TAKEN = (("tokens/s", "tokens_per_s", 1, 2), ("ceiling, tokens/s", "ceiling_tokens_per_s", 1, 2),
         ("tokens per pass", "tokens_per_pass", 1, 2), ("drafted", "drafted", 1, 0),
         ("accepted", "accepted", 1, 0), ("tokens written", "generated_tokens", 1, 0),
         ("GB read while decoding", "read_bytes", 1e9, 2), ("GB/s", "read_bytes_per_s", 1e9, 2),
         ("GB read, in all", "read_mb", 1e3, 2), ("waiting for reads, %", "stall_share", .01, 0),
         ("verifying, %", "verify_share", .01, 0), ("drafting, %", "draft_share", .01, 0),
         ("pinned, MiB", "pinned_bytes", 2**20, 0), ("budget, MiB", "budget_bytes", 2**20, 0),
         ("highest memory charged, MiB", "peak_mib", 1, 0), ("limit hits", "limit_hits", 1, 0),
         ("kills for memory", "oom_kills", 1, 0),
         ("major faults while decoding", "decode_major_faults", 1, 0))


def add_arguments(p):
    peer_arguments(p, "llama-bench, and for limit llama.cpp's llama-completion", "+")
    p.add_argument("--parts", default="memory,limit", help="some of: " + ",".join(PARTS))
    p.add_argument("--files", metavar="FILE,FILE", type=lambda s: s.split(","),
                   default=[TARGET, SMOL], help="models of part memory (default target and smol)")
    p.add_argument("--no-passes", action="store_true", help="memory: prefill and decoding alone")
    p.add_argument("--rounds", type=int, default=3, help="turns of each side (default 3)")
    p.add_argument("--quick", action="store_true", help="tiny runs that only try the script")


def run(args, drey, record):
    parts = chosen(args.parts, PARTS, "part")
    peers = peers_of(args.peers, args.threads, record)
    mapping = next((p for p in peers if p.has("llama-completion")), None)
    if "limit" in parts and not mapping:
        raise Stop("no folder has llama-completion, which limit needs; or --parts memory")
    rounds = 1 if args.quick else args.rounds
    files = [drey.model(f) for f in args.files]
    for i in range(rounds):
        print(f"round {i + 1} of {rounds}", flush=True)
        if "memory" in parts:
            for model in files:
                in_memory(args, drey, peers, record, model, i)
        if "limit" in parts:
            for case, name, limit in CASES:
                in_limit(args, drey, mapping, record, (case, drey.model(name), limit), i)
    for model in files if "memory" in parts else []:
        show_memory(record, case_of(model), [[side for side, _ in p.ways()] for p in peers])
    for case, _, _ in CASES if "limit" in parts else []:
        show_limit(record, case, mapping.name)
    if args.quick:
        print("\nQUICK: not a measurement")


# ---- In memory

def in_memory(args, drey, peers, record, model, i):
    prompt, decode, repeats = (32, 8, 1) if args.quick else (512, 128, 3)
    widths = () if args.no_passes else WIDTHS
    case = case_of(model)
    record.note(case, "drey", i, **drey.bench_model(model, prompt=prompt, decode=decode))
    for peer in peers:
        for side, options in peer.ways():
            got = peer.bench(model, options, prompt, decode, widths, repeats)
            if i == 0:
                record.about(side, build=got["build"])
            record.note(case, side, i, **got)


def show_memory(record, case, families):
    """A row per measurement; for each peer the better of its ways."""
    rows = []
    for metric, title, unit in SPEEDS:
        row = [title, figure(unit * record.median(case, "drey", metric))]
        bests = [record.better(case, metric, ways) for ways in families]
        for best in bests:
            row += [figure(unit * record.median(case, best, metric)) +
                    (" repacked" if best.endswith("+repack") else ""),
                    spread(record.ratios(case, metric, "drey", best))] if best else ["-", "-"]
        if any(bests):
            rows.append(row)
    head = [case, "drey"]
    for ways in families:
        head += [ways[0], "ratio"]
    table("In memory", head, rows)
    print_shares(record, case)


def print_shares(record, case):
    """drey next to the limits of the machine in the same runs."""
    def percent(metric):
        return f"{100 * record.median(case, 'drey', metric):.0f} %"

    print(f"\n{case}: memory {figure(record.median(case, 'drey', 'memory_bytes_per_s') / 1e9)} GB/s, "
          f"8-bit {figure(record.median(case, 'drey', 'int8_ops_per_s') / 1e12)} TOPS; decoding at "
          f"{percent('bandwidth_share')} of memory, prefill at {percent('prefill_peak_share')} of the "
          "peak, passes of " +
          ", ".join(f"{n} at {percent(f'pass_{n}_peak_share')}" for n in (16, 32, 64)), flush=True)


# ---- Less memory than the model

def in_limit(args, drey, peer, record, what, i):
    case, model, limit = what
    tokens, plain, theirs = (12, 3, 2) if args.quick else (128, 16, 10)
    question = drey.path("question")
    with open(question, "w") as f:
        f.write(CHAT)
    words = ["-f", question, "--special"]
    draft = ["-d", drey.model(DRAFT)]
    record.note(case, "drey", i, **drey.generate(model, limit, tokens, words + draft)[0])
    record.note(case, peer.name, i,
                **peer.generate(drey.limits, model, limit, question, theirs))
    record.note(case, "drey-no-draft", i, **drey.generate(model, limit, plain, words)[0])


def show_limit(record, case, peer):
    sides = ("drey", "drey-no-draft", peer)
    rows = []
    for title, metric, unit, digits in TAKEN:
        values = [record.median(case, s, metric) / unit for s in sides]
        rows.append([title] + ["-" if v != v else f"{v:.{digits}f}" for v in values])
    table("Less memory than the model", [case, "drey with draft", "drey", peer + ", mmap"], rows)
    ratios = record.ratios(case, "tokens_per_s", "drey", peer)
    print(f"\nover {peer}: {spread(ratios, 1)}", flush=True)
