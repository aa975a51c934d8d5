"""outlines: as an OpenAI server, and as a vLLM server, which also takes patterns and grammars."""
from typing import Annotated, Literal

import openai
import outlines
from outlines.types import Regex
from pydantic import BaseModel, Field

from tried import KEY, MODEL, URL, tried


class River(BaseModel):
    name: Annotated[str, Field(max_length=30)]
    countries: Annotated[list[str], Field(max_length=6)]
    length_km: int


client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY, timeout=600)
asked = "Describe the river Rhine: its name, its countries, its length in km."
for name, model in (("from_openai", outlines.from_openai(client, MODEL)), ("from_vllm", outlines.from_vllm(client, MODEL))):
    with tried(f"{name}: text"):
        assert model("Name a river.", max_tokens=30)
    with tried(f"{name}: text in a stream"):
        assert "".join(model.stream("Name a river.", max_tokens=30))
    with tried(f"{name}: a model of pydantic"):
        assert River.model_validate_json(model(asked, River, max_tokens=300)).name
vllm = outlines.from_vllm(client, MODEL)
with tried("from_vllm: a choice"):
    assert vllm("Is the sky blue or red?", Literal["blue", "red"], max_tokens=10) in ("blue", "red")
with tried("from_vllm: a pattern"):
    assert len(vllm("In which year did the wall fall?", Regex(r"(19|20)[0-9]{2}"), max_tokens=10)) == 4
with tried("from_vllm: int"):
    int(vllm("How many legs has a spider?", int, max_tokens=10))
with tried("from_vllm: list[int]"):
    assert vllm("The first three primes:", list[int], max_tokens=40).startswith("[")
