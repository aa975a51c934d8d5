"""What early exits cost in accuracy: questions of GSM8K, answered with and without them.

Each question is one turn of a chat, at temperature 0; the answer is the last number of the text.
`off` drafts with trees as drey run does, which changes no text; the other ways write one token per
pass, so that all of their tokens may leave: drey run --policy single --exit WAY. Every answer is a
line of --results as soon as it is known: what is there is not asked again. The questions are
GSM8K's test.jsonl."""
import json
import re

from record import table
from sides import DRAFT, TARGET, run as run_command
from texts import Results

COLUMNS = "way question gold answer right tokens tokens_per_s layers_per_token compared agreed counted"
ASKED = "\n\nThink step by step. End with the answer alone, as a number behind ####."
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def add_arguments(p):
    p.add_argument("--questions", metavar="FILE", required=True, help="GSM8K's test.jsonl")
    p.add_argument("--results", metavar="FILE", required=True, help="CSV file to continue")
    p.add_argument("--file", metavar="FILE", default=TARGET, help="the model (default the 1.5B)")
    p.add_argument("--draft", metavar="FILE", default=DRAFT, help="its draft, or lookup (default the 0.5B)")
    p.add_argument("--exit-file", metavar="FILE", help="predictors (next to the model)")
    p.add_argument("--exit-threshold", metavar="X", help="(the file's)")
    p.add_argument("--ways", default="off,fast", help="off, fast, exact (default off,fast)")
    p.add_argument("--n", type=int, default=100, help="the first so many questions (default 100)")
    p.add_argument("--tokens", type=int, default=400, help="at most, of an answer (default 400)")
    p.add_argument("--memory", default="unlimited", help="as for drey run (unlimited)")


def value_of(text):
    """The number after the last ####, or the last one of all; None: there is none."""
    found = NUMBER.findall(text.rsplit("####", 1)[1]) if "####" in text else []
    found = found[:1] or NUMBER.findall(text)[-1:]
    return float(found[0].replace(",", "")) if found else None


def ask(args, drey, way, question):
    stats = drey.path("stats.json")
    draft = args.draft if args.draft == "lookup" else drey.model(args.draft)
    words = ["-d", draft]
    if way != "off":
        words += ["--policy", "single", "--exit", way]
        words += ["--exit-file", args.exit_file] if args.exit_file else []
        words += ["--exit-threshold", args.exit_threshold] if args.exit_threshold else []
    text = run_command([drey.program, "run", "-m", drey.model(args.file), "--memory", args.memory, "-t",
                        drey.threads, "--chat", "-n", str(args.tokens), "-q", "--stats", stats, *words,
                        "-p", question + ASKED]).decode(errors="replace")
    with open(stats) as f:
        return text, json.load(f)


def run(args, drey, record):
    with open(args.questions) as f:
        questions = [json.loads(line) for line in f][:args.n]
    ways, results = args.ways.split(","), Results(args.results, COLUMNS, "question")
    for i, q in enumerate(questions):
        gold = value_of(q["answer"])
        for way in ways:
            if results.has({"way": way, "question": i}):
                continue
            text, got = ask(args, drey, way, q["question"])
            answer, exits = value_of(text), got.get("exits", {})
            results.add({**exits, "way": way, "question": i, "gold": str(gold), "right": int(answer == gold),
                         "answer": "" if answer is None else str(answer), "tokens": got["generated_tokens"],
                         "tokens_per_s": got["tokens_per_s"], "counted": exits.get("tokens", 0)})
            print(f"question {i}, {way}: {answer} for {gold}", flush=True)
    show(ways, results.rows, record)


def show(ways, rows, record):
    lines = []
    off = {r["question"]: r["answer"] for r in rows if r["way"] == ways[0]}
    for way in ways:
        own = [r for r in rows if r["way"] == way]
        total = lambda key: sum(float(r[key]) for r in own)
        counted = total("counted")
        layers = sum(float(r["layers_per_token"]) * float(r["counted"]) for r in own)
        apart = total("compared") - total("agreed")
        same = sum(r["answer"] == off.get(r["question"]) for r in own)
        record.note("gsm8k", way, 0, questions=len(own), right=total("right"),
                    layers_per_token=layers / counted if counted else 0)
        lines.append([way, f"{total('right'):.0f} of {len(own)}", f"{same} of {len(own)}",
                      f"{layers / counted:.2f}" if counted else "all",
                      f"{100 * (1 - apart / counted):.1f} %" if counted else "-"])
    table("GSM8K", ["exits", "right", f"same answer as {ways[0]}", "layers per token",
                    "tokens that the whole depth also chooses"], lines)
