"""Penalties and samplers of drey serve: the texts of drey run with the same options, with and
without a draft. serve_sampling.py DREY FOLDER"""

from serve_client import *

drey, folder = sys.argv[1:]
model, draft = f"{folder}/toy.gguf", f"{folder}/draft.gguf"
text = "/v1/completions"
PROMPT = "The cat sat on the mat. The cat sat on"
N = 40
WAYS = [
    ({"repeat_penalty": 1.4}, ["--repeat-penalty", "1.4"]),
    ({"repetition_penalty": 1.4, "repeat_last_n": 9}, ["--repeat-penalty", "1.4", "--repeat-last-n", "9"]),
    ({"rep_pen": 1.3}, ["--repeat-penalty", "1.3"]),
    ({"presence_penalty": 1.5, "frequency_penalty": 0.5, "penalty_last_n": 20},
     ["--presence-penalty", "1.5", "--frequency-penalty", "0.5", "--repeat-last-n", "20"]),
    ({"dry_multiplier": 3, "dry_base": 2, "dry_allowed_length": 1, "dry_penalty_last_n": 60},
     ["--dry-multiplier", "3", "--dry-base", "2", "--dry-allowed-length", "1", "--dry-last-n", "60"]),
    ({"repeat_penalty": 1.2, "temperature": 0.9, "seed": 4, "top_k": 30},
     ["--repeat-penalty", "1.2", "--temp", "0.9", "--seed", "4", "--top-k", "30"]),
]


def ask(server, **fields):
    status, answer = server.post(text, {"prompt": PROMPT, "max_tokens": N, "ignore_eos": True, **fields})
    check(status == 200, f"{fields}: {answer}")
    return answer["choices"][0]["text"]


def texts(server):
    plain, seen = ask(server), set()
    for fields, options in WAYS:
        got = ask(server, **fields)
        check(got == run(drey, model, PROMPT, N, "--ignore-eos", *options), f"{fields}: not the text of drey run")
        check(got == ask(server, **fields, speculative=False), f"{fields}: another text without a draft")
        check(got != plain, f"{fields} change nothing: that is no test")
        seen.add(got)
    check(len(seen) == len(WAYS), "two ways give one text: that is no test")
    ten = {"dry_multiplier": 3, "dry_allowed_length": 1}
    check(ask(server, **ten, dry_sequence_breakers=[]) != ask(server, **ten, dry_sequence_breakers=list("abcdefghijklmnopqrstuvw .:")),
          "breakers change nothing")


def other_names(server):
    """Names that other servers have for the same things."""
    plain = ask(server)
    check(ask(server, temperature=0.9, seed=4) != plain == ask(server, temperature=0.9, seed=4, do_sample=False), "do_sample false is greedy")
    for fields, n in (({"max_new_tokens": 7}, 7), ({"max_new_tokens": 7, "n_predict": 6}, 6), ({"max_new_tokens": 7, "max_tokens": 5}, 5)):
        status, answer = server.post(text, {"prompt": PROMPT, "ignore_eos": True, **fields})
        check(status == 200 and answer["usage"]["completion_tokens"] == n, f"{fields}: {answer}")
    stop = plain[len(plain) // 2:][:2]
    stopped = ask(server, stop=[stop])
    check(len(stopped) < len(plain), f"{stop!r} stops nothing in {plain!r}")
    for name in "stop_sequences", "stopping_strings", "stop_sequence":
        check(ask(server, **{name: [stop]}) == stopped, f"{name} stops nothing")
        check(ask(server, **{name: [stop]}, stop=["no such text"]) == plain, f"{name} next to stop")


def samplers(server):
    way = {"repeat_penalty": 1.4, "temperature": 0.9, "seed": 4, "top_k": 5}
    all_of_them = ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "tfs_z", "typical_p", "top_p", "min_p", "xtc", "temperature"]
    check(ask(server, **way) == ask(server, **way, samplers=all_of_them), "the usual order")
    check(ask(server, **way, samplers=["top_p", "penalties", "top_k", "temperature"]) == ask(server, **way), "what does nothing has no place")
    check(ask(server, **way, samplers=["top_k", "temperature"]) == ask(server, **{**way, "repeat_penalty": 1}), "what is left out")
    status, answer = server.post(text, {"prompt": PROMPT, **way, "samplers": ["temperature", "top_k"]})
    check(status == 400 and "'top_k' after 'temperature'" in answer["error"]["message"], f"another order: {answer}")


def silly_tavern(server):
    """Sends what SillyTavern sends to llama.cpp's server, with its usual values."""
    fields = {"temperature": 0.7, "top_p": 0.95, "top_k": 40, "min_p": 0.05, "typical_p": 1, "typical": 1, "sampler_seed": -1, "seed": -1,
              "repeat_penalty": 1.1, "repetition_penalty": 1.1, "rep_pen": 1.1, "rep_pen_range": 0, "repeat_last_n": 64,
              "presence_penalty": 0, "frequency_penalty": 0, "tfs": 1, "tfs_z": 1, "top_a": 0, "mirostat": 0, "mirostat_mode": 0,
              "mirostat_tau": 5, "mirostat_eta": 0.1, "dynatemp_range": 0, "dynatemp_exponent": 1, "smoothing_factor": 0,
              "smoothing_curve": 1, "dry_multiplier": 0, "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": 0,
              "dry_sequence_breakers": "[\"\\n\", \":\"]", "xtc_threshold": 0.1, "xtc_probability": 0, "nsigma": 0, "top_n_sigma": 0, "min_keep": 0,
              "guidance_scale": 1, "negative_prompt": "", "grammar": "", "json_schema": None, "logit_bias": [], "banned_tokens": [],
              "stop": ["\nUser:"], "stopping_strings": ["\nUser:"], "n_predict": 5, "n_probs": 0, "cache_prompt": True, "stream": False,
              "samplers": ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "tfs_z", "typical_p", "top_p", "min_p", "xtc", "temperature"]}
    for path in ("/completion", text):
        status, answer = server.post(path, {"prompt": PROMPT, **fields})
        check(status == 200, f"{path}: {answer}")


s = Server(drey, model, "-d", draft, "--repeat-penalty", "1").wait_ready()
texts(s)
other_names(s)
samplers(s)
silly_tavern(s)
check(s.stop() == 0, f"the server's end: {s.errors()}")
s = Server(drey, model, "--repeat-penalty", "1.4").wait_ready()
check(ask(s) == run(drey, model, PROMPT, N, "--ignore-eos", "--repeat-penalty", "1.4"), "a default")
check(s.stop() == 0, f"the server's end: {s.errors()}")
done()
