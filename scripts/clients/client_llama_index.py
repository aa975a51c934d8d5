"""llama-index: OpenAILike."""
from typing import Annotated

from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel, Field

from tried import ASKED, KEY, MODEL, URL, tried


class River(BaseModel):
    """A river."""
    name: Annotated[str, Field(max_length=30)]
    countries: Annotated[list[str], Field(max_length=12)]


def get_weather(city: str, unit: str) -> str:
    """The weather in a city, in a unit."""
    return f"18 {unit} in {city}"


options = {"model": MODEL, "api_base": f"{URL}/v1", "api_key": KEY, "max_tokens": 200, "temperature": 0, "timeout": 600, "context_window": 8192}
model = OpenAILike(is_chat_model=True, is_function_calling_model=True, **options)
asked = [ChatMessage(role="user", content="Name a river.")]
with tried("chat"):
    assert model.chat(asked).message.content
with tried("chat in a stream"):
    assert "".join(c.delta or "" for c in model.stream_chat(asked))
with tried("complete"):
    assert OpenAILike(is_chat_model=False, **options).complete("The sky is").text
with tried("complete in a stream"):
    assert "".join(c.delta or "" for c in OpenAILike(is_chat_model=False, **options).stream_complete("The sky is"))
with tried("tools"):
    tool = FunctionTool.from_defaults(get_weather)
    got = model.chat_with_tools([tool], user_msg=ASKED, tool_required=True)
    assert model.get_tool_calls_from_response(got)[0].tool_kwargs["city"]
with tried("predict_and_call"):
    assert "18" in str(model.predict_and_call([FunctionTool.from_defaults(get_weather)], user_msg=ASKED, tool_required=True))
with tried("as_structured_llm"):
    assert model.as_structured_llm(River).chat(asked).raw.name
