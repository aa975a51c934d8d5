"""langchain-openai."""
from typing import Annotated

from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel, Field

from tried import ASKED, KEY, LONG, MODEL, URL, tried


class River(BaseModel):
    """A river."""
    name: Annotated[str, Field(max_length=30)]
    countries: Annotated[list[str], Field(max_length=12)]


@tool
def get_weather(city: str, unit: str) -> str:
    """The weather in a city, in a unit."""
    return f"18 {unit} in {city}"


model = ChatOpenAI(base_url=f"{URL}/v1", api_key=KEY, model=MODEL, max_tokens=200, temperature=0, timeout=600)
with tried("invoke"):
    assert model.invoke("Name a river.").content
with tried("stream"):
    assert "".join(c.content for c in model.stream("Name a river."))
with tried("batch"):
    assert all(a.content for a in model.batch(["Name a river.", "Name a town."]))
with tried("bind_tools"):
    asked = [("user", ASKED)]
    got = model.bind_tools([get_weather]).invoke(asked)
    assert got.tool_calls, got
with tried("bind_tools, any, and what comes of it"):
    bound = model.bind_tools([get_weather], tool_choice="any", parallel_tool_calls=False)
    got = bound.invoke(asked)
    call = got.tool_calls[0]
    answer = model.bind_tools([get_weather]).invoke([*asked, got, ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])])
    assert answer.content or answer.tool_calls
with tried("bind_tools in a stream"):
    whole = None
    for chunk in bound.stream(asked):
        whole = chunk if whole is None else whole + chunk
    assert whole.tool_calls[0]["args"]["city"]
for method in ("json_schema", "function_calling", "json_mode"):
    with tried(f"with_structured_output, {method}"):
        prompt = "Describe a river. Answer in JSON with the keys name (a text) and countries (a list of texts)."
        assert model.with_structured_output(River, method=method).invoke(prompt).name
with tried("with_structured_output, json_schema, strict, in a stream"):
    assert list(model.with_structured_output(River, method="json_schema", strict=True).stream("Describe a river."))[-1].name
with tried("the responses interface"):
    responses = ChatOpenAI(base_url=f"{URL}/v1", api_key=KEY, model=MODEL, max_tokens=60, use_responses_api=True, timeout=600)
    assert responses.invoke("Name a river.").text
    assert responses.bind_tools([get_weather], tool_choice="any").invoke(ASKED).tool_calls
with tried("OpenAIEmbeddings (check_embedding_ctx_length=False)"):
    vectors = OpenAIEmbeddings(base_url=f"{URL}/v1", api_key=KEY, model=MODEL, check_embedding_ctx_length=False)
    assert len(vectors.embed_documents(["a", "b"])) == 2 and vectors.embed_query("a")
with tried("too long: ContextOverflowError"):
    try:
        model.invoke(LONG)
        raise AssertionError("no error")
    except AssertionError:
        raise
    except Exception as e:
        assert "ContextOverflow" in type(e).__name__, f"{type(e).__name__}: {e}"
