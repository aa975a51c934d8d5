"""JSON of a schema over free text about the same things: tokens per second with a draft.

Each pair of forms.jsonl is written as JSON and as free text, in turns. The schemas ask for more
than the tokens of a run, so that both texts have the same length; a shorter one is a fault. With
--limit each run is in its own memory cgroup with a cold page cache (root), --memory the limit over
1.05.
Passes and steps of the draft are counted as well: where they say something else than the clock, the
machine did something else meanwhile."""
import json

from record import figure, median, spread, table
from sides import DRAFT, HERE, Stop, run as run_command

SIDES = ("json", "free")


def add_arguments(p):
    p.add_argument("--file", metavar="FILE", default="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
                   help="the model (default the 1.5B)")
    p.add_argument("--draft", metavar="FILE", default=DRAFT, help="its draft")
    p.add_argument("--limit", metavar="MIB", type=int, help="memory (default: no limit)")
    p.add_argument("--tokens", type=int, default=180, help="of each text (default 180)")
    p.add_argument("--rounds", type=int, default=3, help="turns of each side (default 3)")


def run(args, drey, record):
    with open(f"{HERE}/scripts/bench/forms.jsonl") as f:
        pairs = [json.loads(line) for line in f]
    for i in range(args.rounds):
        for pair in pairs:
            for side in SIDES if i % 2 == 0 else SIDES[::-1]:
                measure(args, drey, record, pair, side, i)
    rows, ratios = [], []
    for name in (pair["name"] for pair in pairs):
        ratios += record.ratios(name, "tokens_per_s", *SIDES)
        rows.append([name, *(figure(record.median(name, side, m)) for m in (
            "tokens_per_s", "passes", "draft_steps") for side in SIDES),
            spread(record.ratios(name, "tokens_per_s", *SIDES))])
    table("JSON over free text", [
        "pair", "JSON, tokens/s", "free", "JSON, passes", "free", "JSON, draft steps", "free",
        "ratio"], rows)
    print(f"median of all rounds and pairs: {median(ratios):.2f}")


def measure(args, drey, record, pair, side, i):
    words = ["--chat", "-p", pair[side], "-d", drey.model(args.draft)]
    end = ["--ignore-eos"]
    if side == "json":
        schema = drey.path("schema.json")
        with open(schema, "w") as f:
            json.dump(pair["schema"], f)
        words += ["--json-schema", schema]
        end = []
    model = drey.model(args.file)
    if args.limit:
        got = drey.generate(model, args.limit, args.tokens, words)[0]
    else:
        stats = drey.path("stats.json")
        run_command([drey.program, "run", "-q", "-m", model, "--memory", "unlimited", "-t",
                     drey.threads, "-n", str(args.tokens), "-c", "1024", "--stats", stats,
                     *end, *words])
        with open(stats) as f:
            got = json.load(f)
    if got["generated_tokens"] != args.tokens:
        raise Stop(f"{pair['name']}: the {side} text has {got['generated_tokens']} tokens")
    record.note(pair["name"], side, i, draft_steps=got["speculation"]["draft_steps"], **got)
    print(f"{pair['name']}: {side}, round {i + 1}: {got['tokens_per_s']:.1f} tokens/s, "
          f"{got['passes']} passes", flush=True)
