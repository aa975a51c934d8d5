"""litellm: its providers for OpenAI's interface, Anthropic's, ollama's and llamafile."""
import json

import litellm

from tried import ASKED, KEY, LONG, MODEL, URL, WEATHER, raises, tried

litellm.suppress_debug_info = True
messages = [{"role": "user", "content": "Name a river in Europe."}]
tools = [{"type": "function", "function": {"name": "get_weather", "description": "The weather in a city", "parameters": WEATHER}}]
schema = {"type": "json_schema", "json_schema": {"name": "river", "strict": True, "schema": {
    "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": False}}}
providers = {"openai": f"{URL}/v1", "anthropic": URL, "ollama_chat": URL, "llamafile": f"{URL}/v1"}
for provider, base in providers.items():
    def ask(content=messages, provider=provider, base=base, **more):
        return litellm.completion(model=f"{provider}/{MODEL}", api_base=base, api_key=KEY, messages=content, timeout=600, **{"max_tokens": 40, **more})

    with tried(f"{provider}/"):
        assert ask().choices[0].message.content
    with tried(f"{provider}/ in a stream"):
        assert "".join(c.choices[0].delta.content or "" for c in ask(stream=True))
    with tried(f"{provider}/ with a schema"):
        assert json.loads(ask(response_format=schema, max_tokens=100).choices[0].message.content)["name"]
    with tried(f"{provider}/ with tools"):
        required = {} if provider == "ollama_chat" else {"tool_choice": "required"}
        got = ask([{"role": "user", "content": ASKED}], tools=tools, max_tokens=200, temperature=0, **required).choices[0].message
        assert json.loads(got.tool_calls[0].function.arguments)["city"], got
    too_long = litellm.BadRequestError if provider == "ollama_chat" else litellm.ContextWindowExceededError  # it has no such case for ollama
    with tried(f"{provider}/ too long: {too_long.__name__}"):
        raises(too_long, lambda: ask([{"role": "user", "content": LONG}]))
with tried("responses"):
    assert litellm.responses(model=f"openai/{MODEL}", api_base=f"{URL}/v1", api_key=KEY, input="Name a river.", max_output_tokens=24).output
with tried("embedding"):
    assert litellm.embedding(model=f"openai/{MODEL}", api_base=f"{URL}/v1", api_key=KEY, input=["a", "b"]).data
with tried("text_completion"):
    assert litellm.text_completion(model=f"openai/{MODEL}", api_base=f"{URL}/v1", api_key=KEY, prompt="The sky is", max_tokens=5).choices[0].text
