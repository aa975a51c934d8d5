"""Codex: the command that the wheel of openai-codex-cli-bin brings."""
import os
import tempfile

import codex_cli_bin

from tried import KEY, MODEL, URL, broken_repository, command, repository_works, tried

CONFIG = f"""
model = "{MODEL}"
model_provider = "{MODEL}"
[model_providers.{MODEL}]
name = "{MODEL}"
base_url = "{URL}/v1"
wire_api = "responses"
env_key = "DREY_API_KEY"
"""
found = [os.path.join(at, n) for at, _, names in os.walk(os.path.dirname(codex_cli_bin.__file__)) for n in names if n == "codex"]


def codex(home, folder, *words):
    with open(os.path.join(home, "config.toml"), "w") as f:
        f.write(CONFIG)
    return command(found[0], "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json", *words,
                   cwd=folder, HOME=home, CODEX_HOME=home, DREY_API_KEY=KEY)


with tried("codex exec"), tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as folder:
    said = codex(home, folder, "Say hello in one word. Do not use tools.")
    assert "agent_message" in said and "turn.completed" in said, said[-300:]
with tried("codex exec, a file is mended"), tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as folder:
    broken_repository(folder)
    said = codex(home, folder, "Run this shell command: sed -i 's/width + height/width * height/' shapes.py")
    assert repository_works(folder), "the test still fails"
