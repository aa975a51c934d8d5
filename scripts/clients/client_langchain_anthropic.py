"""langchain-anthropic."""
from typing import Annotated

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel, Field

from tried import ASKED, KEY, MODEL, URL, tried


class River(BaseModel):
    """A river."""
    name: Annotated[str, Field(max_length=30)]
    countries: Annotated[list[str], Field(max_length=12)]


@tool
def get_weather(city: str, unit: str) -> str:
    """The weather in a city, in a unit."""
    return f"18 {unit} in {city}"


model = ChatAnthropic(base_url=URL, api_key=KEY, model=MODEL, max_tokens=200, temperature=0, timeout=600)
with tried("invoke"):
    assert model.invoke("Name a river.").content
with tried("stream"):
    assert "".join(c.text for c in model.stream("Name a river."))
with tried("bind_tools, any, and what comes of it"):
    got = model.bind_tools([get_weather], tool_choice="any").invoke(ASKED)
    call = got.tool_calls[0]
    answer = model.bind_tools([get_weather]).invoke([("user", ASKED), got, ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])])
    assert answer.content or answer.tool_calls
with tried("bind_tools in a stream"):
    whole = None
    for chunk in model.bind_tools([get_weather], tool_choice="any").stream(ASKED):
        whole = chunk if whole is None else whole + chunk
    assert whole.tool_calls[0]["args"]["city"]
for method in ("function_calling", "json_schema"):
    with tried(f"with_structured_output, {method}"):
        assert model.with_structured_output(River, method=method).invoke("Describe a river.").name
with tried("get_num_tokens_from_messages"):
    assert model.get_num_tokens_from_messages([HumanMessage("Name a river.")]) > 3
