#!/usr/bin/env python3
"""scripts/bench answers: each form of question that public repositories have, what counts as an
answer, and a toy model that answers with and without early exits.
    bench_answers.py DREY MAKE_TOY"""
import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile

DREY, MAKE_TOY = map(os.path.abspath, sys.argv[1:3])
HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{HERE}/scripts/bench")
import answers  # noqa: E402
from question_sets import read_set  # noqa: E402
from sides import Stop  # noqa: E402

FILES = {
    "test.jsonl": '{"question": "How many?", "answer": "2+1,000\\n#### 1,002"}\n',
    "mmlu/a_test.csv": 'Q1,w,x,y,z,B\n"Q2, or so",w,x,y,z,C\nQ3,w,x,y,z,A\n',
    "mmlu/b_test.csv": "question,choice0,choice1,choice2,choice3,answer\nQ4,1,2,3,4,0\nQ5,1,2,3,4,3\n",
    "dev.tsv": 'sentence\tlabel\na "fine film\t1\nvery good\t1\nnot good\t0\nno film at all\t0\n',
    "csqa.jsonl": "".join(json.dumps(line) + "\n" for line in (
        {"question": "Where?", "choices": {"label": ["A", "B"], "text": ["here", "there"]}, "answerKey": "B"},
        {"question": {"stem": "When?", "choices": [{"label": "A", "text": "now"}, {"label": "B", "text": "then"}]},
         "answerKey": "A"},
        {"question": "Who?", "choices": {"label": ["A", "B"], "text": ["me", "you"]}, "answerKey": "B"})),
    "truth.csv": "Type,Question,Best Answer,Correct Answers,Incorrect Answers\n" + "".join(
        f"a,Is {i} even?,best {i},fine,no; never; at night; too many\n" for i in range(4)),
    "cnn.csv": ',id,article,highlights\n0,x,"one two three four","short .\nshorter ."\n',
    "cnn.jsonl": '{"article": "one two three four", "highlights": "short"}\n',
    "t1.json": json.dumps({
        "Definition": ["POS or NEG?"], "Positive Examples": [{"input": "good", "output": "POS"}],
        "Instances": [{"input": "bad", "output": ["NEG"]}, {"input": "great", "output": ["POS"]}]}),
    "t2.json": json.dumps({
        "Definition": "Sum it up.", "Positive Examples": [],
        "Instances": [{"input": f"text {i}", "output": [f"summary {i}"]} for i in range(11)]}),
}


def write_files(folder):
    os.mkdir(f"{folder}/mmlu")
    for name, text in FILES.items():
        with open(f"{folder}/{name}", "w") as f:
            f.write(text)
    for name, text in (("flickr.de.gz", "Ein Hund .\nZwei\n"), ("flickr.en.gz", "A dog .\nTwo\n")):
        with gzip.open(f"{folder}/{name}", "wt") as f:
            f.write(text)


def forms(folder):
    of = lambda name, words=400: read_set(f"{folder}/{name}", 100, words)
    golds = lambda name: [q.gold for q in of(name).questions]
    numbers = of("test.jsonl")
    assert (numbers.name, numbers.questions[0].kind, numbers.questions[0].gold) == ("gsm8k", "number", "1002.0")
    both = of("mmlu")  # Q1 and Q4 of each subject's first are the examples
    assert both.name == "mmlu" and [q.gold for q in both.questions] == ["C", "D", "A"], both
    assert "Question: Q1\n(A) w\n(B) x\n(C) y\n(D) z\nAnswer: The answer is (B).\n" in both.questions[0].prompt
    assert both.questions[0].prompt.endswith("Question: Q2, or so\n(A) w\n(B) x\n(C) y\n(D) z\nAnswer:")
    assert golds("mmlu/a_test.csv") == ["A"] and of("mmlu/a_test.csv").name == "mmlu-a"
    reviews = of("dev.tsv")  # examples: one of each kind
    assert [q.gold for q in reviews.questions] == ["positive", "negative"], reviews
    assert 'Sentence: a "fine film\nAnswer: The answer is positive.' in reviews.questions[0].prompt
    assert "Sentence: not good\nAnswer: The answer is negative." in reviews.questions[0].prompt
    assert golds("csqa.jsonl") == ["B"] and "(A) now\n(B) then\nAnswer: The answer is (A)." in of(
        "csqa.jsonl").questions[0].prompt
    truth = of("truth.csv").questions
    assert len(truth) == 2 and all(f"({q.gold}) best" in q.prompt.rsplit("Question:", 1)[1] and len(q.labels) == 4 and
                                   "too many" not in q.prompt for q in truth), truth
    for name in ("cnn.csv", "cnn.jsonl"):
        (article,) = of(name, 3).questions
        assert article.kind == "text" and article.prompt.endswith("\n\none two three"), article
    assert golds("cnn.csv") == ["short . shorter ."]
    assert golds("flickr.de.gz") == ["A dog .", "Two"] and "Ein Hund ." in of("flickr.de.gz").questions[0].prompt
    assert [(q.kind, q.gold, q.labels) for q in of("t1.json").questions] == [
        ("choice", "NEG", ["NEG", "POS"]), ("choice", "POS", ["NEG", "POS"])]
    assert of("t1.json").questions[0].prompt == "POS or NEG?\n\ngood\nAnswer: The answer is POS.\n\nbad\nAnswer:"
    assert of("t2.json").questions[3].kind == "text" and golds("t2.json")[3] == "summary 3"
    for bad, why in (("none.csv", "No such file"), ("bad.json", "none of the forms"), ("bad.csv", "none of the forms")):
        if bad != "none.csv":
            with open(f"{folder}/{bad}", "w") as f:
                f.write('{"Instances": [1]}' if bad == "bad.json" else "a,b\n1,2\n")
        try:
            of(bad)
            raise AssertionError(bad)
        except Stop as stop:
            assert why in str(stop), stop


def judging():
    for text, labels, right in ((" The answer is (B", "ABCD", "B"), (" B) because A", "ABCD", "B"), (" As such", "ABCD", ""),
                                (" The answer is NEG", ["NEG", "POS"], "NEG"), (" not positively", ["positive"], "")):
        got = answers.choice_in(text.split("answer is", 1)[-1], labels)
        assert got == right, (text, got)
    for text, right in (("1 and 2 #### 3,000.5 eggs 4", 3000.5), ("so 12 of -7", -7), ("none", None)):
        assert answers.number_in(text) == right, text


def asking(folder):
    target = f"{folder}/deep.gguf"
    for name, layers in (("deep", "8"), ("half", "4")):
        subprocess.run([MAKE_TOY, f"{folder}/{name}.gguf", layers], check=True)
    with open(f"{folder}/prompts", "w") as f:
        f.writelines(json.dumps({"id": str(i), "group": "ab"[i % 2], "prompt": f"text number {i} of"}) + "\n" for i in range(4))
    subprocess.run([DREY, "train", "exit", "-m", target, "-d", f"{folder}/half.gguf", "-n", "24", "-q", "--prompts",
                    f"{folder}/prompts"], check=True)
    words = [sys.executable, f"{HERE}/scripts/bench", "answers", "--drey", DREY, "--threads", "1", "--file", target,
             "--draft", f"{folder}/half.gguf", "--exit-threshold", "0.3", "--results", f"{folder}/csv", "--ways",
             "off,exact,fast", "--tokens", "16", "--sets", f"{folder}/t1.json", f"{folder}/flickr.de.gz"]
    out = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    with open(f"{folder}/csv") as f:
        rows = list(csv.DictReader(f))
    assert [(r["set"], r["way"], r["question"]) for r in rows] == [
        (s, w, q) for s in ("t1", "multi30k-flickr") for w in ("off", "exact", "fast") for q in "01"], rows
    for r in rows:
        first = next(o for o in rows if o["way"] == "off" and (o["set"], o["question"]) == (r["set"], r["question"]))
        exits = r["way"] != "off"
        assert (float(r["counted"]) > 0) == (float(r["layers_per_token"]) > 0) == exits, r
        assert 0 <= float(r["layers_per_token"]) <= 8 and int(r["passes"]) > 0, r
        assert (r["gold"] == "") == (r["kind"] == "text"), r  # nothing of a text is kept
        if r["way"] != "fast":
            assert r["answer"] == first["answer"], (r, first)
            assert r["kind"] == "choice" or float(r["rouge_first"]) == 1 or not r["answer"], r
    assert "| exact | " in out and "Rouge-L to the set's" in out, out
    again = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    assert " off: " not in again and "| fast | " in again, again


def main():
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder)
        forms(folder)
        judging()
        asking(folder)


if __name__ == "__main__":
    main()
