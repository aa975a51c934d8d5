"""Questions of public data sets, from files as public repositories have them:

    GSM8K            test.jsonl, "question" and "answer" (with ####)
    MMLU             NAME_test.csv, or a folder of them: question, four choices, a letter; also with
                     a head (question, choice0 ..., answer) and a number from 0
    SST-2            dev.tsv, "sentence" and "label"
    CommonsenseQA    dev_rand_split.jsonl, the choices next to the question or in it
    TruthfulQA       TruthfulQA.csv: the best answer among up to three incorrect ones, whose order
                     follows from the question
    CNN/DailyMail    .csv or .jsonl, "article" and "highlights"
    multi30k         NAME.de or NAME.de.gz, with NAME.en next to it: from German to English
    natural-instructions  taskNNN_NAME.json, "Definition", "Positive Examples" and "Instances";
                     choices where all answers are one of ten words or fewer

Two of the first questions of a set of choices are its examples; natural-instructions brings its
own."""
import csv
import gzip
import hashlib
import itertools
import json
import os
import re
from dataclasses import dataclass, field

from sides import Stop

LETTERS = "ABCDEFGHIJ"
ANSWERED = "Answer: The answer is"
STEPS = "\n\nThink step by step. End with the answer alone, as a number behind ####."


@dataclass
class Question:
    kind: str  # number, choice, text
    prompt: str
    gold: str
    labels: list = field(default_factory=list)  # of choices


@dataclass
class Set:
    name: str
    questions: list


def read_set(path, n, words=400):
    """The first n questions of a file or folder; articles end after so many words."""
    try:
        name, questions = known(path, words)
        questions = list(itertools.islice(questions, n))
    except (OSError, EOFError) as error:
        raise Stop(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    except (ValueError, LookupError, TypeError, AttributeError, csv.Error):
        raise Stop(f"{path} is none of the forms that scripts/bench/question_sets.py lists") from None
    if not questions:
        raise Stop(f"{path} holds no question")
    return Set(name, questions)


def known(path, words):
    stem = re.sub(r"(\.(gz|jsonl?|csv|tsv|de))+$", "", os.path.basename(os.path.normpath(path)))
    if os.path.isdir(path) or path.endswith("_test.csv"):
        return ("mmlu" if os.path.isdir(path) else f"mmlu-{stem[:-5]}"), choices(
            "The following are questions with choices.", mmlu(path))
    if re.search(r"\.de(\.gz)?$", path):
        return f"multi30k-{stem}", translations(path)
    if path.endswith(".tsv"):
        return f"sst2-{stem}", choices("Is the sentiment of a sentence of a film's review positive or negative?",
                                       sst2(path))
    if path.endswith(".json"):
        return natural(stem, read_json(path), words)
    if path.endswith(".jsonl"):
        return of_lines(stem, [json.loads(line) for line in open_text(path) if line.strip()], words)
    rows = list(csv.DictReader(open_text(path)))
    if "Best Answer" in rows[0]:
        return "truthfulqa", choices("The following are questions with choices.", map(truthful, rows))
    return f"cnn-dailymail-{stem}", summaries(rows, words)


def open_text(path):
    return gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8", newline="")


def read_json(path):
    with open_text(path) as f:
        return json.load(f)


def of_lines(stem, lines, words):
    if "article" in lines[0]:
        return f"cnn-dailymail-{stem}", summaries(lines, words)
    if "answer" in lines[0]:
        return "gsm8k", (Question("number", q["question"] + STEPS, str(float(
            q["answer"].rsplit("####", 1)[1].strip().replace(",", "")))) for q in lines)
    return "commonsenseqa", choices("The following are questions with choices.", map(commonsense, lines))


# ---- Choices: (the question with its choices, the right label, all labels)

def choices(instruction, asked):
    """Questions after the instruction and two of the first of them with their answers, which
    differ if they can."""
    asked = iter(asked)
    first = list(itertools.islice(asked, 8))
    examples = [0] + [i for i in range(1, len(first)) if first[i][1] != first[0][1]][:1]
    head = instruction + "\n\n" + "".join(f"{text}\n{ANSWERED} {shown(gold)}.\n\n"
                                          for text, gold, _ in (first[i] for i in examples))
    rest = [q for i, q in enumerate(first) if i not in examples]
    for text, gold, labels in itertools.chain(rest, asked):
        yield Question("choice", f"{head}{text}\nAnswer:", gold, list(labels))


def shown(label):
    return f"({label})" if len(label) == 1 else label


def lettered(question, texts, right):
    labels = LETTERS[:len(texts)]
    return (f"Question: {question.strip()}\n" + "\n".join(f"({a}) {t.strip()}" for a, t in zip(labels, texts)),
            labels[right], labels)


def mmlu(path):
    """Questions of a folder: the first of each subject, then the second of each, and so on."""
    names = [path] if not os.path.isdir(path) else sorted(
        os.path.join(path, name) for name in os.listdir(path) if name.endswith("_test.csv"))
    subjects = []
    for name in names:
        with open_text(name) as f:
            rows = [r for r in csv.reader(f) if r]
        subjects.append(rows[1:] if rows[0][0] == "question" else rows)
    for rows in itertools.zip_longest(*subjects):
        for r in filter(None, rows):
            yield lettered(r[0], r[1:5], int(r[5]) if r[5].isdigit() else LETTERS.index(r[5]))


def sst2(path):
    with open_text(path) as f:
        for r in csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield f"Sentence: {r['sentence'].strip()}", ("negative", "positive")[int(r["label"])], (
                "negative", "positive")


def commonsense(line):
    of = line["question"] if isinstance(line["question"], dict) else line
    stem, listed = of.get("stem", of.get("question")), of["choices"]
    texts = listed["text"] if isinstance(listed, dict) else [c["text"] for c in listed]
    return lettered(stem, texts, LETTERS.index(line["answerKey"]))


def truthful(row):
    wrong = [w.strip() for w in row["Incorrect Answers"].split(";") if w.strip()][:3]
    at = hashlib.sha256(row["Question"].encode()).digest()[0] % (len(wrong) + 1)
    return lettered(row["Question"], [*wrong[:at], row["Best Answer"], *wrong[at:]], at)


# ---- Texts

def summaries(rows, words):
    for r in rows:
        article = " ".join(r["article"].split()[:words])
        yield Question("text", f"Summarize this article in three sentences.\n\n{article}", " ".join(r["highlights"].split()))


def translations(path):
    with open_text(path) as german, open_text(re.sub(r"\.de(\.gz)?$", r".en\1", path)) as english:
        for de, en in zip(german, english):
            yield Question("text", "Translate this sentence from German to English. Answer with the translation alone."
                                   f"\n\n{de.strip()}", en.strip())


def natural(stem, task, words):
    """A task of natural-instructions; several right answers: the first one."""
    definition = task["Definition"] if isinstance(task["Definition"], str) else " ".join(task["Definition"])
    instances = [(i["input"], i["output"][0] if isinstance(i["output"], list) else i["output"])
                 for i in task["Instances"]]
    labels = sorted({gold for _, gold in instances} | {e["output"] for e in task["Positive Examples"]})
    if len(labels) > len(LETTERS):
        return stem, (Question("text", f"{definition}\n\n{' '.join(text.split()[:words])}", " ".join(gold.split()))
                      for text, gold in instances)
    head = f"{definition}\n\n" + "".join(f"{e['input']}\n{ANSWERED} {shown(e['output'])}.\n\n"
                                         for e in task["Positive Examples"][:2])
    return stem, (Question("choice", f"{head}{text}\nAnswer:", gold, labels) for text, gold in instances)
