"""Claude Code: the command that the wheel of claude-agent-sdk brings, alone and with the SDK."""
import asyncio
import json
import os
import tempfile

import claude_agent_sdk
from claude_agent_sdk import ClaudeAgentOptions, query

from tried import KEY, MODEL, URL, broken_repository, command, repository_works, tried

claude = os.path.join(os.path.dirname(claude_agent_sdk.__file__), "_bundled", "claude")


def here(home):
    return {"HOME": home, "ANTHROPIC_BASE_URL": URL, "ANTHROPIC_AUTH_TOKEN": KEY, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"}


with tried("claude -p"), tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as folder:
    said = json.loads(command(claude, "-p", "Say hello in one word.", "--model", MODEL, "--output-format", "json", cwd=folder, **here(home)))
    assert said["result"] and not said["is_error"], said
with tried("claude -p, a file is mended"), tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as folder:
    broken_repository(folder)
    command(claude, "-p", "In the file shapes.py, the function area adds. Use the Edit tool to change `width + height` to `width * height`. Read the "
            "file first.", "--model", MODEL, "--permission-mode", "acceptEdits", "--max-turns", "8", "--tools", "Read,Edit", "--output-format",
            "stream-json", "--verbose", cwd=folder, **here(home))
    assert repository_works(folder), "the test still fails"
with tried("claude_agent_sdk.query"), tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as folder:
    async def ask():
        options = ClaudeAgentOptions(model=MODEL, cwd=folder, env=here(home), max_turns=1, tools=[])
        return [type(m).__name__ async for m in query(prompt="Say hello in one word.", options=options)]
    assert "ResultMessage" in asyncio.run(ask())
