"""pydantic-ai: texts, tools and output types, by OpenAI's chats and responses and by Anthropic's
interface."""
from typing import Annotated

from pydantic import BaseModel, Field
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from tried import KEY, MODEL, URL, tried


class River(BaseModel):
    name: Annotated[str, Field(max_length=30)]
    countries: Annotated[list[str], Field(max_length=12)]


openai = OpenAIProvider(base_url=f"{URL}/v1", api_key=KEY)
models = {"chat": OpenAIChatModel(MODEL, provider=openai), "responses": OpenAIResponsesModel(MODEL, provider=openai),
          "anthropic": AnthropicModel(MODEL, provider=AnthropicProvider(api_key=KEY, base_url=URL))}
short = {"max_tokens": 300, "temperature": 0, "timeout": 600}
for name, model in models.items():
    with tried(f"{name}: text"):
        assert Agent(model, model_settings=short).run_sync("Name a river.").output
    with tried(f"{name}: output_type by a tool"):
        assert Agent(model, output_type=ToolOutput(River), model_settings=short).run_sync("Describe the Rhine.").output.name
    with tried(f"{name}: a tool"):
        agent, called = Agent(model, model_settings=short), []

        @agent.tool_plain
        def get_weather(city: str) -> str:
            """The weather in a city."""
            called.append(city)
            return "18 degrees"

        assert agent.run_sync("What is the weather in Paris? Use the tool get_weather.").output and called, "the model did not call it"
with tried("chat: output_type by a schema"):
    assert Agent(models["chat"], output_type=NativeOutput(River), model_settings=short).run_sync("Describe the Rhine.").output.name
with tried("chat: output_type by the prompt"):
    assert Agent(models["chat"], output_type=PromptedOutput(River), model_settings=short).run_sync("Describe the Rhine.").output.name
with tried("chat: a stream"):
    with Agent(models["chat"], model_settings=short).run_stream_sync("Name a river.") as run:
        assert list(run.stream_text())[-1]
