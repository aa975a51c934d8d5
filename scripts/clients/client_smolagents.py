"""smolagents: an agent that writes Python, and one that calls tools."""
from smolagents import CodeAgent, OpenAIServerModel, ToolCallingAgent, tool

from tried import KEY, MODEL, URL, tried


@tool
def multiply(a: int, b: int) -> int:
    """Multiplies two numbers.

    Args:
        a: the first number
        b: the second number
    """
    return a * b


model = OpenAIServerModel(MODEL, api_base=f"{URL}/v1", api_key=KEY, temperature=0, max_tokens=400, client_kwargs={"timeout": 600})
with tried("CodeAgent"):
    agent = CodeAgent(tools=[multiply], model=model, max_steps=4, verbosity_level=0)
    assert "391" in str(agent.run("What is 17 * 23? Call multiply and give its result to final_answer."))
with tried("CodeAgent, use_structured_outputs_internally"):
    agent = CodeAgent(tools=[multiply], model=model, max_steps=4, verbosity_level=0, use_structured_outputs_internally=True)
    assert "391" in str(agent.run("What is 17 * 23? Call multiply and give its result to final_answer."))
with tried("ToolCallingAgent"):
    agent = ToolCallingAgent(tools=[multiply], model=model, max_steps=4, verbosity_level=0)
    answer = agent.run("What is 17 * 23? Call multiply, then give its result to final_answer.")
    calls = [c.name for step in agent.memory.steps for c in (getattr(step, "tool_calls", None) or [])]
    assert "391" in str(answer), (answer, calls)
with tried("ToolCallingAgent in a stream"):
    agent = ToolCallingAgent(tools=[multiply], model=model, max_steps=4, verbosity_level=0, stream_outputs=True)
    assert list(agent.run("What is 17 * 23? Call multiply, then give its result to final_answer.", stream=True))
