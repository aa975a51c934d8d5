"""llm, the command: a chat, a schema, tools, embeddings."""
import json
import os
import tempfile

from tried import ASKED, KEY, MODEL, URL, command, tried

with tempfile.TemporaryDirectory() as folder:
    with open(os.path.join(folder, "extra-openai-models.yaml"), "w") as f:
        f.write(f"- model_id: {MODEL}\n  model_name: {MODEL}\n  api_base: {URL}/v1\n  api_key_name: {MODEL}\n"
                "  supports_schema: true\n  supports_tools: true\n"
                f"- model_id: {MODEL}-text\n  model_name: {MODEL}\n  api_base: {URL}/v1\n  api_key_name: {MODEL}\n  completion: true\n")

    def llm(*words):
        return command("llm", *words, LLM_USER_PATH=folder, HOME=folder)

    with tried("keys"):
        llm("keys", "set", MODEL, "--value", KEY)
    with tried("a prompt"):
        assert llm("-m", MODEL, "-o", "max_tokens", "24", "Name a river.").strip()
    with tried("a prompt, --no-stream"):
        assert llm("-m", MODEL, "--no-stream", "-o", "max_tokens", "24", "Name a river.").strip()
    with tried("-c, which continues"):
        assert llm("-c", "-o", "max_tokens", "24", "And another one.").strip()
    with tried("completion: true"):
        assert llm("-m", f"{MODEL}-text", "-o", "max_tokens", "8", "The sky is").strip()
    with tried("--schema"):
        assert json.loads(llm("-m", MODEL, "--schema", "name, length_km int", "Describe the Rhine."))["name"]
    with tried("tools"):
        tool = 'def get_weather(city: str) -> str:\n    "The weather in a city"\n    return "It is 18 degrees in " + city + "."\n'
        said = llm("-m", MODEL, "--functions", tool, "--td", "-o", "temperature", "0", "-o", "max_tokens", "200", ASKED)
        assert "Tool call: get_weather" in said, said
