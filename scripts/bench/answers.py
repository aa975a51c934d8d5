"""Measures what early exits cost in accuracy: questions of public data sets, answered with and
without them.

Each set is a file, or a folder of files, as public repositories have it (question_sets.py lists
the forms; docs/lab/2026-11-answers.md says where the files are to be had):

    a number to find      GSM8K
    choices               MMLU, SST-2, CommonsenseQA, TruthfulQA, tasks of natural-instructions
    a text to write       CNN/DailyMail, multi30k, tasks of natural-instructions

Choices are asked after examples, which the server computes once and keeps; the answer is a short
sentence, as the first token of a text goes through all layers in any case. Numbers and texts are
turns of a chat. All is at temperature 0. `off` drafts with trees, which changes no text; the other
ways write one token per pass, so that all of their tokens may leave. Texts are compared by Rouge-L
over words, to those of the first way and to the set's own. Every answer is a line of --results as
soon as it is known: what is there is not asked again. It has no text of the set."""
import os
import re

import server
from question_sets import read_set
from record import figure, table
from sides import DRAFT, TARGET, Stop
from texts import Results, rouge_l

COLUMNS = ("set draft way question kind gold answer right tokens passes tokens_per_pass layers_per_token left compared "
           "agreed counted rouge_first rouge_gold")
WAYS = ("off", "fast", "exact")
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def add_arguments(p):
    p.add_argument("--sets", metavar="PATH", nargs="+", required=True, help="files or folders of questions")
    p.add_argument("--results", metavar="FILE", required=True, help="CSV file to continue")
    p.add_argument("--file", metavar="FILE", default=TARGET, help="the model (default the 1.5B)")
    p.add_argument("--draft", metavar="FILE", default=DRAFT, help="its draft, heads, or lookup (default the 0.5B)")
    p.add_argument("--exit-file", metavar="FILE", help="predictors (next to the model)")
    p.add_argument("--exit-threshold", metavar="X", help="(the file's)")
    p.add_argument("--ways", default="off,fast", help=f"of {', '.join(WAYS)} (default off,fast)")
    p.add_argument("--n", type=int, default=100, help="the first so many questions of each set (default 100)")
    p.add_argument("--words", type=int, default=400, help="of an article, at most (default 400)")
    p.add_argument("--tokens", type=int, default=400, help="of a number's or a text's answer, at most (default 400)")
    p.add_argument("--memory", default="unlimited", help="as for drey serve (unlimited)")


# ---- Asking

def command_of(args, drey, way):
    draft = args.draft if args.draft in ("lookup", "none") else drey.model(args.draft)
    words = ["-d", draft]
    if way != "off":
        words += ["--policy", "single", "--exit", way]
        words += ["--exit-file", args.exit_file] if args.exit_file else []
        words += ["--exit-threshold", args.exit_threshold] if args.exit_threshold else []
    return [drey.program, "serve", "-m", drey.model(args.file), "--memory", args.memory, "-t", drey.threads,
            "--sessions", "1", "-c", "4096", "--prefix-folder", drey.path("prefixes"), *words]


def ask(address, question, tokens):
    """Returns what was written, the number of its tokens, and its statistics."""
    if question.kind == "choice":
        got = server.ask(address, "/completion", {"prompt": question.prompt, "n_predict": 12, "stop": ["\n", "."]})
        return got["content"], got["timings"]["predicted_n"], got["drey"]
    got = server.ask(address, "/v1/chat/completions", {
        "messages": [{"role": "user", "content": question.prompt}], "max_tokens": tokens})
    return got["choices"][0]["message"]["content"], got["usage"]["completion_tokens"], got["drey"]


# ---- Judging

def number_in(text):
    """The number after the last ####, or the last one of all; None: there is none."""
    found = NUMBER.findall(text.rsplit("####", 1)[1]) if "####" in text else []
    found = found[:1] or NUMBER.findall(text)[-1:]
    return float(found[0].replace(",", "")) if found else None


def choice_in(text, labels):
    """The label that is named first, whole: a letter in brackets or not, or a word."""
    found = [(m.start(), label) for label in labels
             for m in re.finditer(rf"(?<![\w']){re.escape(label)}(?![\w'])", text)]
    return min(found)[1] if found else ""


def answer_in(question, text):
    if question.kind == "choice":
        return choice_in(text.split("answer is", 1)[-1], question.labels)
    if question.kind == "number":
        value = number_in(text)
        return "" if value is None else str(value)
    return " ".join(text.split())


def row_of(question, text, n_tokens, drey_says):
    exits, answer = drey_says.get("exits", {}), answer_in(question, text)
    row = {k: exits.get(k, 0) for k in ("layers_per_token", "left", "compared", "agreed")}
    row.update(kind=question.kind, answer=answer, tokens=n_tokens, passes=drey_says["passes"],
               tokens_per_pass=drey_says["tokens_per_pass"], counted=exits.get("tokens", 0))
    if question.kind == "text":
        return {**row, "gold": "", "rouge_gold": rouge_l(answer.split(), question.gold.split())}
    return {**row, "gold": question.gold, "right": int(answer == question.gold)}


def fill(args, drey, results, of, way, first_way):
    """Asks what is not known yet of a set. The server keeps beginnings in a folder, so that the
    next way does not compute the questions again."""
    draft = os.path.basename(args.draft)
    key = lambda way, i: {"set": of.name, "draft": draft, "way": way, "question": i}
    open_ = [i for i in range(len(of.questions)) if not results.has(key(way, i))]
    if not open_:
        return
    with server.running(command_of(args, drey, way)) as address:
        for i in open_:
            question = of.questions[i]
            row = row_of(question, *ask(address, question, args.tokens))
            first = row if way == first_way else results.row(key(first_way, i))
            if question.kind == "text":
                row["rouge_first"] = rouge_l(row["answer"].split(), first["answer"].split())
            results.add({**key(way, i), **row})
            print(f"{of.name} {i}, {way}: {row['answer'][:40]} for {question.gold[:40]}", flush=True)


def run(args, drey, record):
    ways = args.ways.split(",")
    if any(way not in WAYS for way in ways):
        raise Stop(f"--ways takes {', '.join(WAYS)}")
    sets = [read_set(path, args.n, args.words) for path in args.sets]
    results, draft = Results(args.results, COLUMNS, "question"), os.path.basename(args.draft)
    for of in sets:
        for way in ways:
            fill(args, drey, results, of, way, ways[0])
    for of in sets:
        show(of.name, [r for r in results.rows if r["set"] == of.name and r["draft"] == draft], ways, record)


# ---- Showing

def total(rows, key):
    return sum(float(r[key]) for r in rows)


def layers_of(rows):
    """Layers per token, and how many tokens the whole depth also chooses; of exits alone."""
    counted = total(rows, "counted")
    if not counted:
        return ["all", "-"]
    layers = sum(float(r["layers_per_token"]) * float(r["counted"]) for r in rows)
    apart = total(rows, "compared") - total(rows, "agreed")
    return [f"{layers / counted:.2f}", f"{100 * (1 - apart / counted):.1f} %"]


def show(name, rows, ways, record):
    lines = []
    first = {r["question"]: r["answer"] for r in rows if r["way"] == ways[0]}
    is_text = any(r["kind"] == "text" for r in rows)
    for way in ways:
        own = [r for r in rows if r["way"] == way]
        if not own:
            continue
        per_pass = total(own, "tokens") / max(total(own, "passes"), 1)
        same = sum(r["answer"] == first.get(r["question"]) for r in own)
        record.note(name, way, 0, questions=len(own), right=total(own, "right"), same=same, tokens_per_pass=per_pass)
        said = [f"{total(own, 'rouge_gold') / len(own):.3f}", f"{total(own, 'rouge_first') / len(own):.3f}"] \
            if is_text else [f"{total(own, 'right'):.0f} of {len(own)}"]
        lines.append([way, *said, f"{same} of {len(own)}", figure(per_pass), *layers_of(own)])
    said = ["Rouge-L to the set's", f"to {ways[0]}'s"] if is_text else ["right"]
    table(name, ["exits", *said, f"same answer as {ways[0]}", "tokens per pass", "layers per token",
                 "tokens that the whole depth also chooses"], lines)
