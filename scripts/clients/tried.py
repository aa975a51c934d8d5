"""Functions that the programs of this folder share: where the server is, and lines that say
what was tried and how it came out, which __main__.py reads."""
import os
import subprocess
import sys
import traceback

URL, KEY, MODEL = os.environ.get("DREY_URL", "http://127.0.0.1:8080"), os.environ.get("DREY_KEY", "secret"), "drey"
LONG = "The quick brown fox jumps over the lazy dog. " * int(os.environ.get("DREY_LONG", "6000"))  # more than the context holds
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
           "required": ["city", "unit"], "additionalProperties": False}
ASKED = "What is the weather in Paris, in celsius? Use the tool."


class tried:
    """with tried("a chat"): what fails inside is reported, and the program continues."""

    def __init__(self, what):
        self.what = what

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            print(f"+ {self.what}", flush=True)
            return True
        if not issubclass(kind, Exception):
            return False
        at = traceback.extract_tb(trace)[0].lineno if trace else 0
        print(f"- {self.what}: line {at}: {kind.__name__}: " + " ".join(str(value).split())[:400], flush=True)
        return True


def raises(kind, call):
    """Calls, and gives the error of this kind that it has to raise."""
    try:
        got = call()
    except kind as e:
        return e
    raise AssertionError(f"no {kind.__name__}, but {str(got)[:200]}")


def command(*words, cwd=None, timeout=900, **variables):
    """Returns what a command writes, with these variables and without other keys and addresses."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "ANTHROPIC_", "CLAUDE", "CODEX_", "OLLAMA_"))}
    done = subprocess.run(words, cwd=cwd, timeout=timeout, env={**kept, **variables}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    print(f"# {' '.join(words)[:200]}: exit code {done.returncode}\n" + done.stdout, file=sys.stderr)
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stdout[-300:]}"
    return done.stdout


def broken_repository(folder):
    """A small git repository with a fault, which its test shows."""
    files = {"shapes.py": "def area(width, height):\n    \"\"\"The area of a rectangle.\"\"\"\n    return width + height\n",
             "test_shapes.py": "from shapes import area\n\nassert area(3, 4) == 12\nassert area(5, 2) == 10\n"}
    for name, text in files.items():
        with open(os.path.join(folder, name), "w") as f:
            f.write(text)
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=A", "-c", "user.email=a@localhost", "commit", "-qm", "First"]):
        subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True)


def repository_works(folder):
    return subprocess.run([sys.executable, "test_shapes.py"], cwd=folder, capture_output=True).returncode == 0
