"""langchain-ollama."""
from typing import Annotated

from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama, OllamaEmbeddings, OllamaLLM
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


keyed = {"headers": {"Authorization": f"Bearer {KEY}"}, "timeout": 600}
model = ChatOllama(base_url=URL, model=MODEL, num_predict=200, temperature=0, client_kwargs=keyed)
with tried("invoke"):
    assert model.invoke("Name a river.").content
with tried("stream"):
    assert "".join(c.content for c in model.stream("Name a river."))
with tried("bind_tools, and what comes of it"):
    got = model.bind_tools([get_weather]).invoke(ASKED)
    call = got.tool_calls[0]
    answer = model.bind_tools([get_weather]).invoke([("user", ASKED), got, ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])])
    assert answer.content or answer.tool_calls
for method in ("json_schema", "json_mode"):
    with tried(f"with_structured_output, {method}"):
        prompt = "Describe a river. Answer in JSON with the keys name (a text) and countries (a list of texts)."
        assert model.with_structured_output(River, method=method).invoke(prompt).name
with tried("OllamaLLM"):
    assert OllamaLLM(base_url=URL, model=MODEL, num_predict=20, client_kwargs=keyed).invoke("Name a river.")
with tried("OllamaEmbeddings"):
    assert len(OllamaEmbeddings(base_url=URL, model=MODEL, client_kwargs=keyed).embed_documents(["a", "b"])) == 2
