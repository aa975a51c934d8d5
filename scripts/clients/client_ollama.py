"""The official ollama client."""
import json

import ollama

from tried import ASKED, KEY, MODEL, URL, WEATHER, tried

client = ollama.Client(host=URL, headers={"Authorization": f"Bearer {KEY}"}, timeout=600)
messages = [{"role": "user", "content": "Name a river in Europe."}]
short = {"num_predict": 24, "temperature": 0}
tools = [{"type": "function", "function": {"name": "get_weather", "description": "The weather in a city", "parameters": WEATHER}}]


def get_weather(city: str, unit: str) -> str:
    """The weather in a city.

    Args:
        city: its name
        unit: celsius or fahrenheit
    """
    return f"18 {unit} in {city}"


with tried("chat"):
    whole = client.chat(model=MODEL, messages=messages, options=short)
    assert whole.message.content and whole.eval_count
with tried("chat in a stream"):
    assert "".join(c.message.content for c in client.chat(model=MODEL, messages=messages, options=short, stream=True)) == whole.message.content
with tried("format"):
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "length": {"type": "integer"}}, "required": ["name", "length"]}
    assert json.loads(client.chat(model=MODEL, messages=messages, format=schema, options={"num_predict": 200}).message.content)["name"]
with tried("tools"):
    asked = [{"role": "user", "content": ASKED}]
    assert client.chat(model=MODEL, messages=asked, tools=tools, options={"num_predict": 200, "temperature": 0}).message.tool_calls
with tried("a Python function as a tool, and what comes of it"):
    got = client.chat(model=MODEL, messages=asked, tools=[get_weather], options={"num_predict": 200, "temperature": 0}).message
    call = got.tool_calls[0].function
    asked += [got, {"role": "tool", "tool_name": call.name, "content": get_weather(**call.arguments)}]
    assert client.chat(model=MODEL, messages=asked, tools=[get_weather], options=short).message.content
with tried("generate"):
    assert client.generate(model=MODEL, prompt="Name a river.", options=short).response
with tried("generate with a suffix"):
    assert client.generate(model=MODEL, prompt="def add(a, b):\n    ", suffix="\n\nprint(add(1, 2))", options=short).response
with tried("embed"):
    assert len(client.embed(model=MODEL, input=["a", "b"]).embeddings) == 2
with tried("list, show, ps"):
    assert client.list().models and client.show(MODEL) and client.ps()
