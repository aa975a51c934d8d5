#!/usr/bin/env python3
"""Client programs against drey serve, each in an environment with nothing else in it.

    python3 scripts/clients [--model FILE] [--draft FILE] [--url URL] [--envs DIR] [NAME...]

Makes an environment for each NAME (default: all), installs the newest version from the package
index, starts the server with a key, runs client_NAME.py there, and prints a table in Markdown: the
program, its version, what worked, and what did not with the reason. What a program writes goes to
DIR/NAME.log. It needs a network, so it is no part of the tests; those of tests/serve have the forms
of the requests. With --url a server that runs already is asked; its key has to be "secret".

The environments take 12 GB (open_webui most of it); --remove removes each after its run. Some
results depend on what the model can do: a small one may answer where a tool should be called.
"""
import argparse
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CACHE = os.environ.get("DREY_MODELS") or os.path.expanduser("~/.cache/drey/models")
# What is installed for client_NAME.py; the first package's version is shown.
CLIENTS = {
    "openai": ["openai"],
    "anthropic": ["anthropic"],
    "ollama": ["ollama"],
    "claude": ["claude-agent-sdk"],
    "codex": ["openai-codex-cli-bin"],
    "aider": ["aider-chat"],
    "litellm": ["litellm"],
    "langchain_openai": ["langchain-openai"],
    "langchain_anthropic": ["langchain-anthropic"],
    "langchain_ollama": ["langchain-ollama"],
    "llama_index": ["llama-index-llms-openai-like"],
    "dspy": ["dspy"],
    "instructor": ["instructor"],
    "outlines": ["outlines", "openai"],
    "guidance": ["guidance", "openai"],
    "smolagents": ["smolagents[openai]"],
    "pydantic_ai": ["pydantic-ai-slim[openai,anthropic]"],
    "llm": ["llm"],
    "lm_eval": ["lm-eval[api]", "transformers"],
    "open_webui": ["open-webui"],
}


def environment(folder, name, python):
    """The environment's bin folder, made if it is not there."""
    env = os.path.join(folder, f"venv-clients-{name}")
    done = os.path.join(env, "installed")
    if not os.path.exists(done):
        subprocess.run([python, "-m", "venv", env], check=True)
        with open(os.path.join(folder, f"{name}.log"), "w") as log:
            subprocess.run([os.path.join(env, "bin", "pip"), "install", "-q", *CLIENTS[name]], stdout=log, stderr=log, check=True)
        open(done, "w").close()
    return os.path.join(env, "bin")


def version(bin_folder, name):
    package = CLIENTS[name][0].split("[")[0]
    said = subprocess.run([os.path.join(bin_folder, "python"), "-c", f"import importlib.metadata as m; print(m.version('{package}'))"],
                          capture_output=True, text=True)
    return f"{package} {said.stdout.strip()}"


def start_server(args):
    draft = ["-d", args.draft] if args.draft else ["-d", "none"]
    server = subprocess.Popen([args.drey, "serve", "-m", args.model, *draft, "-c", str(args.context), "--memory", args.memory, "--sessions", "2",
                               "--port", "0", "--api-key", "secret"], stdout=subprocess.PIPE, text=True)
    url = server.stdout.readline().strip()
    if not url:
        raise SystemExit("clients: the server did not start")
    return server, url


def row(args, name, url):
    """One row of the table."""
    try:
        at = environment(args.envs, name, args.python)
    except subprocess.CalledProcessError as e:
        return f"| {name} | | | not installed: {e} (see {name}.log) |"
    began = time.time()
    variables = {**os.environ, "PATH": at + os.pathsep + os.environ["PATH"], "DREY_URL": url, "DREY_KEY": "secret", "PYTHONUNBUFFERED": "1"}
    with open(os.path.join(args.envs, f"{name}.log"), "w") as log:
        program = subprocess.run([os.path.join(at, "python"), "-B", os.path.join(HERE, f"client_{name}.py")], env=variables, stdout=subprocess.PIPE,
                                 stderr=log, stdin=subprocess.DEVNULL, text=True, timeout=3600)
        log.write(program.stdout)
    lines = program.stdout.splitlines()
    good = [line[2:] for line in lines if line.startswith("+ ")]
    bad = [line[2:] for line in lines if line.startswith("- ")]
    if program.returncode:
        bad.append(f"the program ended with {program.returncode} (see {name}.log)")
    print(f"{name}: {len(good)} good, {len(bad)} not, {time.time() - began:.0f} s", file=sys.stderr)
    text = f"| {version(at, name)} | {'; '.join(good)} | {'; '.join(bad)} |"
    if args.remove:
        subprocess.run(["rm", "-r", os.path.dirname(at)], check=True)
    return text


def main():
    p = argparse.ArgumentParser(prog="scripts/clients", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", metavar="NAME", help=f"which (default all): {', '.join(CLIENTS)}")
    p.add_argument("--drey", metavar="FILE", default=os.path.join(ROOT, "build/cli/drey"), help="the command (default build/cli/drey)")
    p.add_argument("--model", metavar="FILE", default=os.path.join(CACHE, "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"), help="what the server runs")
    p.add_argument("--draft", metavar="FILE", help="and its draft")
    p.add_argument("--context", metavar="N", default=32768, type=int, help="tokens (default 32768)")
    p.add_argument("--memory", metavar="SIZE", default="auto", help="the budget (default auto)")
    p.add_argument("--url", help="a server that runs already")
    p.add_argument("--envs", metavar="DIR", default="clients-envs", help="where the environments are (default clients-envs)")
    p.add_argument("--python", metavar="FILE", default=sys.executable, help="of which Python; open_webui needs 3.11 or 3.12")
    p.add_argument("--remove", action="store_true", help="remove each environment after its run")
    args = p.parse_args()
    unknown = set(args.names) - set(CLIENTS)
    if unknown:
        p.error(f"{', '.join(sorted(unknown))}: not one of {', '.join(CLIENTS)}")
    os.makedirs(args.envs, exist_ok=True)
    server, url = (None, args.url) if args.url else start_server(args)
    try:
        rows = [row(args, name, url) for name in args.names or CLIENTS]
    finally:
        if server:
            server.terminate()
            server.wait()
    print("| program | works | does not |\n|---|---|---|")
    print("\n".join(rows))
    return 0


sys.exit(main())
