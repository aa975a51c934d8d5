"""Open WebUI: the whole program, which is given the server's address; its interface is asked."""
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from tried import ASKED, KEY, URL, WEATHER, tried


def ask(path, body=None, token=None, stream=False):
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    request = urllib.request.Request(base + path, json.dumps(body).encode() if body is not None else None, headers)
    with urllib.request.urlopen(request, timeout=600) as answer:
        text = answer.read().decode()
    return text if stream else json.loads(text)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


port = free_port()
base = f"http://127.0.0.1:{port}"
with tempfile.TemporaryDirectory() as folder:
    variables = {**os.environ, "HOME": folder, "DATA_DIR": folder, "OPENAI_API_BASE_URLS": f"{URL}/v1", "OPENAI_API_KEYS": KEY, "ENABLE_OLLAMA_API": "false",
                 "WEBUI_SECRET_KEY": secrets.token_hex(16), "OFFLINE_MODE": "true", "HF_HUB_OFFLINE": "1", "RAG_EMBEDDING_ENGINE": "openai",
                 "RAG_OPENAI_API_BASE_URL": f"{URL}/v1", "RAG_OPENAI_API_KEY": KEY, "ENABLE_VERSION_UPDATE_CHECK": "false", "SCARF_NO_ANALYTICS": "true",
                 "DO_NOT_TRACK": "true", "ANONYMIZED_TELEMETRY": "false"}
    program = subprocess.Popen(["open-webui", "serve", "--host", "127.0.0.1", "--port", str(port)], env=variables, cwd=folder, stdout=sys.stderr,
                               stderr=sys.stderr, stdin=subprocess.DEVNULL)
    try:
        with tried("it starts"):
            for _ in range(600):
                try:
                    ask("/health")
                    break
                except (urllib.error.URLError, OSError):
                    assert program.poll() is None, "it ended"
                    time.sleep(1)
        with tried("an account"):
            token = ask("/api/v1/auths/signup", {"name": "a", "email": "a@localhost.test", "password": "a-long-Passw0rd"})["token"]
        with tried("the server's model is in its list"):
            model = ask("/api/models", token=token)["data"][0]["id"]
        messages = [{"role": "user", "content": "Name a river in Europe."}]
        with tried("a chat"):
            assert ask("/api/chat/completions", {"model": model, "messages": messages, "stream": False, "max_tokens": 24}, token)["choices"][0]["message"]["content"]
        with tried("a chat in a stream"):
            lines = ask("/api/chat/completions", {"model": model, "messages": messages, "stream": True, "max_tokens": 24}, token, True).split("\n")
            parts = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
            assert "".join(c["delta"].get("content") or "" for p in parts for c in p.get("choices", []))
        with tried("a tool"):
            tools = [{"type": "function", "function": {"name": "get_weather", "description": "The weather in a city", "parameters": WEATHER}}]
            called = ask("/api/chat/completions", {"model": model, "messages": [{"role": "user", "content": ASKED}], "tools": tools, "tool_choice": "required",
                                                   "stream": False, "max_tokens": 200}, token)["choices"][0]["message"]["tool_calls"][0]["function"]
            assert json.loads(called["arguments"])["city"], called
        with tried("JSON"):
            schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}}, "required": ["name"], "additionalProperties": False}
            said = ask("/api/chat/completions", {"model": model, "messages": messages, "stream": False, "max_tokens": 100, "response_format": {
                "type": "json_schema", "json_schema": {"name": "river", "strict": True, "schema": schema}}}, token)["choices"][0]["message"]["content"]
            assert json.loads(said)["name"], said
        with tried("a title, as it asks for each chat"):
            assert ask("/api/v1/tasks/title/completions", {"model": model, "messages": [*messages, {"role": "assistant", "content": "The Rhine."}]}, token)
        with tried("vectors of a document"):
            assert ask("/api/v1/retrieval/embedding", token=token)
    finally:
        program.terminate()
        program.wait(60)
