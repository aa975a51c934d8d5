#!/usr/bin/env python3
"""llama-server's options, translated to those of drey serve, which then takes this process's place.

llama_tests.py starts it in llama-server's place. DREY names drey, DREY_TEST_MODELS a folder with
the models that stand for those that llama.cpp's tests load from a hub. DREY_TEST_TOOL_MODEL, and
DREY_TEST_TOOL_DRAFT with it, name a model that can call tools: it stands for all that are not in
the folder."""
import os
import re
import sys

# Options without a value that drey has no word for: it always does that, or has no use for it.
PLAIN = {"--offline", "--cont-batching", "--kv-unified", "--swa-full", "--slots", "--no-slots", "--metrics", "--verbose",
         "--jinja", "--no-jinja", "--no-mmproj", "--no-cache-idle-slots", "--embedding", "--reranking",
         "--backend_sampling", "--no-models-autoload",
         "--no-ui"}
# Options with a value, which says how llama-server computes, and never what.
VALUES = {"--ubatch-size", "--threads", "--n-gpu-layers", "-ctk", "-ctv", "-fa", "--cache-ram",
          "--spec-draft-n-min", "--mmproj-url", "--media-path", "--hf-file", "--spec-type"}
# Options that drey has by another name.
NAMED = {"--host": "--host", "--port": "--port", "--temp": "--temp", "--seed": "--seed", "--parallel": "--sessions",
         "--batch-size": "--prompt-chunk", "--alias": "--alias", "--api-key": "--api-key", "--pooling": "--pooling",
         "--slot-save-path": "--slot-save-path", "--cors-origins": "--cors-origin", "--models-max": "--models-max"}
# What llama-server does where it is not asked; it also lets any page send requests.
SAMPLING = ["--top-k", "40", "--top-p", "0.95", "--min-p", "0.05"]
# Models by their name at the hub.
MODELS = [("infill", "infill.gguf"), ("split/", "split-00001-of-00003.gguf"), ("", "stories260K.gguf")]


def read(arguments):
    """{option: value}, of one that is missing here the name alone in "refused"."""
    given, refused, at = {}, [], 0
    while at < len(arguments):
        option = arguments[at]
        known = option in VALUES or option in NAMED or option in OTHER
        value = arguments[at + 1] if known and at + 1 < len(arguments) else None
        at += 2 if known else 1
        if option in OTHER or option in NAMED or option in PLAIN or option in VALUES:
            given[option] = value
        else:
            refused.append(option)
    return given, refused


OTHER = {"--model", "--hf-repo", "--model-draft", "--models-dir", "--ctx-size", "--chat-template", "--chat-template-file",
         "--reasoning", "--reasoning-format", "--spec-draft-n-max", "--n-predict"}


def tool_model(given):
    """The model that stands for one of the hub that calls tools; None: another one is meant."""
    return os.environ.get("DREY_TEST_TOOL_MODEL") if "bartowski/" in given.get("--hf-repo", "") else None


def model_options(given):
    folder = os.environ["DREY_TEST_MODELS"]
    if tool_model(given):
        return ["-m", tool_model(given), "-d", os.environ.get("DREY_TEST_TOOL_DRAFT") or "none"]
    if "--hf-repo" not in given and "--model" not in given:
        return ["--models", given.get("--models-dir", os.path.join(folder, "several"))]
    name = given.get("--hf-repo", "") + "/" + (given.get("--hf-file") or "")
    file = given.get("--model") or os.path.join(folder, next(file for part, file in MODELS if part in name))
    draft = given.get("--model-draft", "none")
    out = ["-m", file, "-d", draft]
    if draft != "none" and "--spec-draft-n-max" in given:
        out += ["--policy", "sequence", "--draft-tokens", given["--spec-draft-n-max"]]
    return out


def context_options(given):
    """llama-server divides a context between its slots, unless they share it."""
    if "--ctx-size" not in given:
        return []
    n = int(given["--ctx-size"])
    if "--kv-unified" not in given:
        n //= int(given.get("--parallel", 4))
    return ["--context", str(n)]


def template_options(given):
    """Models without a template have llama-server's default one. What names no template is one."""
    if "--chat-template-file" in given:
        return ["--chat-template", given["--chat-template-file"]]
    name = given.get("--chat-template")
    if not name and tool_model(given):
        return []
    if not name:
        return ["--chat-template", "chatml"]
    if re.fullmatch(r"[a-z0-9-]+", name):
        return ["--chat-template", name]
    path = os.path.join(os.environ["DREY_TEST_MODELS"], f"template-{os.getpid()}.jinja")
    with open(path, "w") as out:
        out.write(name)
    return ["--chat-template", path]


def translate(arguments):
    given, refused = read(arguments)
    out = ["serve", "--memory", "unlimited" if tool_model(given) else "1G"] + model_options(given) + context_options(given) + template_options(given)
    for option, value in given.items():
        if option in NAMED:
            out += [NAMED[option], value]
    if int(given.get("--n-predict", -1)) >= 0:  # else: to the end of the context
        out += ["--predict", given["--n-predict"]]
    if "--models" not in out:
        out += SAMPLING
    if "--cors-origins" not in given:
        out += ["--cors-origin", "*"]
    closed = [word for word, is_closed in (("page", "--no-ui" in given), ("metrics", "--metrics" not in given),
                                           ("slots", "--no-slots" in given)) if is_closed]
    if closed:
        out += ["--closed", ",".join(closed)]
    if given.get("--reasoning") == "off":
        out.append("--no-reasoning")
    return out, refused


def main():
    options, refused = translate(sys.argv[1:])
    if refused:
        sys.exit(f"drey serve has no {refused[0]}")
    print("drey", *options, flush=True)
    os.execv(os.environ["DREY"], [os.environ["DREY"], *options])


if __name__ == "__main__":
    main()
