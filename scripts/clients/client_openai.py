"""The official openai client."""
import asyncio
import json
from typing import Annotated

import openai
from pydantic import BaseModel, Field

from tried import ASKED, KEY, LONG, MODEL, URL, WEATHER, raises, tried

client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0, timeout=600)
create = client.chat.completions.create
messages = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Name a river in Europe."}]
tools = [{"type": "function", "function": {"name": "get_weather", "description": "The weather in a city", "parameters": WEATHER, "strict": True}}]


class River(BaseModel):
    name: Annotated[str, Field(max_length=30)]
    countries: Annotated[list[str], Field(max_length=12)]
    length_km: int


with tried("models"):
    assert client.models.retrieve(client.models.list().data[0].id).id
with tried("chat"):
    whole = create(model=MODEL, messages=messages, max_tokens=24, temperature=0)
    assert whole.choices[0].message.content and whole.usage.prompt_tokens
with tried("stream"):
    chunks = list(create(model=MODEL, messages=messages, max_tokens=24, temperature=0, stream=True, stream_options={"include_usage": True}))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == whole.choices[0].message.content and chunks[-1].usage
with tried(".stream()"):
    with client.chat.completions.stream(model=MODEL, messages=messages, max_tokens=24) as stream:
        assert stream.get_final_completion().choices[0].message.content
with tried(".parse()"):
    got = client.chat.completions.parse(model=MODEL, messages=messages, response_format=River, max_tokens=300)
    assert got.choices[0].message.parsed.name
with tried(".stream() with a format"):
    with client.chat.completions.stream(model=MODEL, messages=messages, response_format=River, max_tokens=300) as stream:
        assert stream.get_final_completion().choices[0].message.parsed.name
with tried("json_object"):
    json.loads(create(model=MODEL, messages=messages, response_format={"type": "json_object"}, max_tokens=300).choices[0].message.content)
with tried("tools"):
    asked = [{"role": "user", "content": ASKED}]
    got = create(model=MODEL, messages=asked, tools=tools, max_tokens=200, temperature=0).choices[0]
    assert got.finish_reason == "tool_calls", got
with tried("tools, required, and what comes of it"):
    got = create(model=MODEL, messages=asked, tools=tools, tool_choice="required", parallel_tool_calls=False, max_tokens=200, temperature=0).choices[0]
    call = got.message.tool_calls[0]
    assert set(json.loads(call.function.arguments)) == {"city", "unit"}
    asked += [got.message, {"role": "tool", "tool_call_id": call.id, "content": "18 degrees and rain"}]
    got = create(model=MODEL, messages=asked, tools=tools, max_tokens=60).choices[0].message
    assert got.content or got.tool_calls
with tried("tools in a stream"):
    with client.chat.completions.stream(model=MODEL, messages=asked[:1], tools=tools, tool_choice="required", max_tokens=200, temperature=0) as stream:
        call = stream.get_final_completion().choices[0].message.tool_calls[0]
        assert call.function.parsed_arguments["city"]
with tried("penalties"):
    assert create(model=MODEL, messages=messages, max_tokens=16, presence_penalty=0.5, frequency_penalty=0.5).choices[0].message.content
with tried("log-probabilities"):
    assert len(create(model=MODEL, messages=messages, max_tokens=4, logprobs=True, top_logprobs=20).choices[0].logprobs.content[0].top_logprobs) == 20
with tried("n, seed, stop, logit_bias"):
    got = [create(model=MODEL, messages=messages, max_tokens=12, n=2, seed=7, temperature=1.2, stop=["\n\n"], logit_bias={"5": -100}) for _ in range(2)]
    assert [c.message.content for c in got[0].choices] == [c.message.content for c in got[1].choices]
with tried("prediction, reasoning_effort, service_tier, store, metadata"):
    assert create(model=MODEL, messages=messages, max_tokens=8, prediction={"type": "content", "content": "The Rhine"}, reasoning_effort="low",
                  service_tier="auto", store=False, metadata={"a": "b"}, user="u").choices[0].message.content
with tried("several prompts"):
    got = client.completions.create(model=MODEL, prompt=["The sky is", "One, two,"], max_tokens=5, temperature=0)
    assert [c.index for c in got.choices] == [0, 1]
with tried("echo with log-probabilities"):
    got = client.completions.create(model=MODEL, prompt="The sky is blue", max_tokens=0, echo=True, logprobs=1, temperature=0).choices[0]
    assert got.text == "The sky is blue" and got.logprobs.token_logprobs[0] is None and got.logprobs.token_logprobs[1] < 0
with tried("suffix"):
    assert client.completions.create(model=MODEL, prompt="def add(a, b):\n    ", suffix="\n\nprint(add(1, 2))", max_tokens=16).choices[0].text
with tried("embeddings"):
    got = client.embeddings.create(model=MODEL, input=["a river", "a stream"]).data
    assert [len(one.embedding) > 100 for one in got] == [True, True]
with tried("embeddings as base64"):
    assert len(client.embeddings.create(model=MODEL, input="a", encoding_format="base64").data[0].embedding) > 1000
with tried("responses"):
    first = client.responses.create(model=MODEL, input="Name a river in Europe.", instructions="Be short.", max_output_tokens=24)
    assert first.output_text and first.usage.output_tokens
with tried("responses that continue"):
    assert client.responses.create(model=MODEL, input="And another one.", previous_response_id=first.id, max_output_tokens=24).output_text
with tried("responses: stream"):
    with client.responses.stream(model=MODEL, input="Name a river in Europe.", max_output_tokens=24) as stream:
        assert stream.get_final_response().output_text
with tried("responses: parse"):
    assert client.responses.parse(model=MODEL, input="Describe a river.", text_format=River, max_output_tokens=300).output_parsed.name
with tried("responses: tools"):
    flat = [{"type": "function", "name": "get_weather", "description": "The weather in a city", "parameters": WEATHER, "strict": True}]
    got = client.responses.create(model=MODEL, input=ASKED, tools=flat, tool_choice="required", max_output_tokens=200)
    call = next(o for o in got.output if o.type == "function_call")
    answer = [{"type": "function_call_output", "call_id": call.call_id, "output": "18 degrees"}]
    assert client.responses.create(model=MODEL, input=answer, previous_response_id=got.id, tools=flat, tool_choice="none", max_output_tokens=40).output_text
with tried("eight chats at the same time"):
    async def all_of_them():
        async with openai.AsyncOpenAI(base_url=f"{URL}/v1", api_key=KEY) as c:
            return await asyncio.gather(*(c.chat.completions.create(model=MODEL, messages=messages, max_tokens=8, temperature=0) for _ in range(8)))
    assert len({a.choices[0].message.content for a in asyncio.run(all_of_them())}) == 1
with tried("too long: context_length_exceeded"):
    e = raises(openai.BadRequestError, lambda: create(model=MODEL, messages=[{"role": "user", "content": LONG}]))
    assert e.code == "context_length_exceeded", e
with tried("a wrong key: AuthenticationError"):
    raises(openai.AuthenticationError, openai.OpenAI(base_url=f"{URL}/v1", api_key="no", max_retries=0).models.list)
