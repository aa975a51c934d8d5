"""lm-evaluation-harness, the command (DREY_TOKENIZER: a folder with the model's tokenizer.json,
which it needs for the first): questions with given answers, scored by the log-probabilities of
an echoed prompt, and texts that are written; on a task of four questions in a file."""
import json
import os
import tempfile

from tried import KEY, MODEL, URL, command, tried

ASKED = [("The capital of France is", ["Paris", "a potato", "Tuesday"]), ("Two and two make", ["four", "window", "blue"]),
         ("Grass is usually", ["green", "seven", "loudly"]), ("A week has seven", ["days", "tables", "clouds"])]
TASKS = {"choice": "output_type: multiple_choice\ndoc_to_text: question\ndoc_to_target: 0\ndoc_to_choice: choices\nmetric_list:\n  - metric: acc\n",
         "written": "output_type: generate_until\ndoc_to_text: question\ndoc_to_target: answer\ngeneration_kwargs:\n  until: [\"\\n\"]\n  max_gen_toks: 16\n"
                    "metric_list:\n  - metric: exact_match\n"}

with tempfile.TemporaryDirectory() as folder:
    questions = os.path.join(folder, "questions.jsonl")
    with open(questions, "w") as f:
        f.writelines(json.dumps({"question": q, "choices": a, "answer": a[0]}) + "\n" for q, a in ASKED)
    for task, lines in TASKS.items():
        with open(os.path.join(folder, f"{task}.yaml"), "w") as f:
            f.write(f"task: drey_{task}\ndataset_path: json\ndataset_kwargs:\n  data_files:\n    test: {questions}\ntest_split: test\n{lines}")

    def lm_eval(kind, path, task, *more):
        out = os.path.join(folder, "results")
        model = f"model={MODEL},base_url={URL}{path},num_concurrent=1,max_retries=1,tokenized_requests=False"
        command("lm_eval", "--model", kind, "--model_args", model + "".join(more), "--include_path", folder, "--tasks", f"drey_{task}",
                "--output_path", out, *(["--apply_chat_template"] if "chat" in kind else []), HOME=folder, OPENAI_API_KEY=KEY, HF_HUB_OFFLINE="1")
        at = [os.path.join(d, n) for d, _, names in os.walk(out) for n in names if n.startswith("results")]
        return json.load(open(max(at)))["results"][f"drey_{task}"]

    with tried("local-completions: choices by log-probabilities"):
        tokenizer = os.environ["DREY_TOKENIZER"]
        got = lm_eval("local-completions", "/v1/completions", "choice", f",tokenizer_backend=huggingface,tokenizer={tokenizer}")
        assert got["acc,none"] >= 0.75, got
    with tried("local-completions: texts"):
        assert "exact_match,none" in lm_eval("local-completions", "/v1/completions", "written", ",tokenizer_backend=None")
    with tried("local-chat-completions: texts"):
        assert "exact_match,none" in lm_eval("local-chat-completions", "/v1/chat/completions", "written")
