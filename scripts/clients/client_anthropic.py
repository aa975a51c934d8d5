"""The official anthropic client."""
import anthropic
from pydantic import BaseModel

from tried import ASKED, KEY, LONG, MODEL, URL, WEATHER, raises, tried

client = anthropic.Anthropic(base_url=URL, api_key=KEY, max_retries=0, timeout=600)
create = client.messages.create
messages = [{"role": "user", "content": "Name a river in Europe."}]
tools = [{"name": "get_weather", "description": "The weather in a city", "input_schema": WEATHER}]


class River(BaseModel):
    name: str
    length_km: int


with tried("messages"):
    whole = create(model=MODEL, max_tokens=24, system="Be short.", messages=messages)
    assert whole.content[0].text and whole.usage.output_tokens
with tried("stream"):
    with client.messages.stream(model=MODEL, max_tokens=24, system="Be short.", messages=messages) as stream:
        assert "".join(stream.text_stream) == whole.content[0].text and stream.get_final_message().stop_reason
with tried("tools"):
    asked = [{"role": "user", "content": ASKED}]
    got = create(model=MODEL, max_tokens=200, messages=asked, tools=tools)
    assert got.stop_reason == "tool_use", got
with tried("tools, any, and what comes of it"):
    got = create(model=MODEL, max_tokens=200, messages=asked, tools=tools, tool_choice={"type": "any"})
    call = next(b for b in got.content if b.type == "tool_use")
    assert set(call.input) == {"city", "unit"}
    asked += [{"role": "assistant", "content": got.content},
              {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "18 degrees and rain"}]}]
    assert create(model=MODEL, max_tokens=60, messages=asked, tools=tools).content
with tried("tools in a stream"):
    with client.messages.stream(model=MODEL, max_tokens=200, messages=asked[:1], tools=tools, tool_choice={"type": "tool", "name": "get_weather"}) as s:
        assert next(b for b in s.get_final_message().content if b.type == "tool_use").input["city"]
with tried("thinking"):
    assert create(model=MODEL, max_tokens=2048, messages=messages, thinking={"type": "enabled", "budget_tokens": 1024}).content
with tried("messages.parse"):
    assert client.messages.parse(model=MODEL, max_tokens=200, messages=messages, output_format=River).parsed_output.name
with tried("count_tokens"):
    assert client.messages.count_tokens(model=MODEL, messages=messages, tools=tools).input_tokens > 20
with tried("models"):
    assert client.models.list().data[0].id
with tried("too long: a bad request that says so"):
    assert "too long" in str(raises(anthropic.BadRequestError, lambda: create(model=MODEL, max_tokens=9, messages=[{"role": "user", "content": LONG}])))
with tried("a wrong key: AuthenticationError"):
    raises(anthropic.AuthenticationError, lambda: anthropic.Anthropic(base_url=URL, api_key="no", max_retries=0).messages.create(
        model=MODEL, max_tokens=9, messages=messages))
