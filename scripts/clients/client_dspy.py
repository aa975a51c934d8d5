"""dspy: signatures by its adapters, reasoning, tools."""
from typing import Literal

import dspy

from tried import KEY, MODEL, URL, tried

lm = dspy.LM(f"openai/{MODEL}", api_base=f"{URL}/v1", api_key=KEY, max_tokens=400, temperature=0, cache=False)
dspy.configure(lm=lm)


class Mood(dspy.Signature):
    """The mood of a sentence."""
    sentence: str = dspy.InputField()
    mood: Literal["good", "bad"] = dspy.OutputField()


class Sums(dspy.Signature):
    """Numbers of a text, and their sum."""
    text: str = dspy.InputField()
    numbers: list[int] = dspy.OutputField()
    total: int = dspy.OutputField()


def multiply(a: int, b: int) -> int:
    """The product of two numbers."""
    return a * b


with tried("a call of the model"):
    assert lm("Name a river.")[0]
for name, adapter in (("ChatAdapter", dspy.ChatAdapter()), ("JSONAdapter", dspy.JSONAdapter())):
    with dspy.context(adapter=adapter):
        with tried(f"{name}: Predict"):
            assert dspy.Predict("question -> answer")(question="Which colour has the sky?").answer
        with tried(f"{name}: a choice"):
            assert dspy.Predict(Mood)(sentence="What a lovely day!").mood in ("good", "bad")
        with tried(f"{name}: ChainOfThought, typed"):
            assert dspy.ChainOfThought(Sums)(text="two apples and three pears").numbers
with tried("ReAct with a tool"):
    assert "56" in str(dspy.ReAct("question -> answer", tools=[multiply], max_iters=3)(question="What is 7 times 8?").answer)
