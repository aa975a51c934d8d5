"""drey serve with a mixture of experts: the text of drey run, in company and alone, and what is
counted. Of a file with a damaged expert only those texts fail that use it, with a sentence that
names tensor and file. serve_experts.py DREY MAKE_TOY FOLDER"""

from serve_client import *

drey, make_toy, folder = sys.argv[1:]
model, damaged = f"{folder}/mixture.gguf", f"{folder}/damaged.gguf"
tensor = "blk.0.ffn_up_exps.weight"
PROMPTS = [chr(c) for c in range(ord("a"), ord("z") + 1)]
N = 3


def ask(server, prompt):
    return server.post("/v1/completions", {"prompt": prompt, "max_tokens": N, "ignore_eos": True})


def is_refusal(status, answer):
    said = answer.get("error", {}).get("message", "")
    return status == 500 and f"{damaged}: tensor {tensor} holds numbers that are not finite" in said


def whole(wanted):
    s = Server(drey, model, "--sessions", "3", "-d", "none").wait_ready()
    got = {}
    for prompt in PROMPTS:
        wanted[prompt] = ask(s, prompt)[1]["choices"][0]["text"]

    def one(prompt):
        got[prompt] = ask(s, prompt)[1]["choices"][0]["text"]
    together(one, PROMPTS)
    check(got == wanted, "another text in company")
    check(wanted["a"] == run(drey, model, "a", N, "--ignore-eos"), "not the text of drey run")
    used, read = s.metric("drey:experts_used_total"), s.metric("drey:experts_read_total")
    check(used > read > 0, f"{read} of {used} experts were read")
    check(s.stop() == 0, f"the server's end: {s.errors()}")


def some_fail(wanted):
    """Checks that texts that use the damaged expert fail, alone and in company, and no other."""
    s = Server(drey, damaged, "--sessions", "3", "-d", "none").wait_ready()
    fails = []
    for prompt in PROMPTS:
        status, answer = ask(s, prompt)
        if status != 200:
            fails.append(prompt)
            check(is_refusal(status, answer), f"{prompt}: {status} {answer}")
        else:
            check(answer["choices"][0]["text"] == wanted[prompt], f"{prompt}: another text")
    check(0 < len(fails) < len(PROMPTS), f"{len(fails)} of {len(PROMPTS)} texts fail: that is no test")

    def one(prompt):
        status, answer = ask(s, prompt)
        if prompt in fails:
            check(is_refusal(status, answer), f"{prompt} in company: {status} {answer}")
        else:
            check(status == 200 and answer["choices"][0]["text"] == wanted[prompt], f"{prompt} next to one that fails: {status} {answer}")
    together(one, PROMPTS)
    check(s.stop() == 0, f"the server's end: {s.errors()}")


subprocess.run([make_toy, model, "2"], check=True, env=dict(os.environ, DREY_TEST_EXPERTS="1"))
with open(model, "rb") as whole_file, open(damaged, "wb") as copy:
    copy.write(whole_file.read())
subprocess.run([make_toy, "--damage", damaged, tensor], check=True)
texts = {}
whole(texts)
some_fail(texts)
done()
