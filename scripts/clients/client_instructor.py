"""instructor: every way in which it asks OpenAI's interface for an object."""
from typing import Annotated

import instructor
import openai
from pydantic import BaseModel, Field

from tried import KEY, MODEL, URL, tried


class River(BaseModel):
    name: Annotated[str, Field(max_length=30)]
    countries: Annotated[list[str], Field(max_length=12)]
    length_km: int


messages = [{"role": "user", "content": "Describe the river Rhine: its name, its countries, its length in km."}]
for mode in ("TOOLS", "JSON", "JSON_SCHEMA", "MD_JSON", "TOOLS_STRICT", "PARALLEL_TOOLS"):
    client = instructor.from_openai(openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY, timeout=600), mode=instructor.Mode[mode])
    with tried(mode):
        if mode == "PARALLEL_TOOLS":
            from collections.abc import Iterable
            assert list(client.chat.completions.create(model=MODEL, messages=messages, response_model=Iterable[River], max_tokens=300, temperature=0))
        else:
            assert client.chat.completions.create(model=MODEL, messages=messages, response_model=River, max_tokens=300, temperature=0).name
    if mode in ("TOOLS", "JSON_SCHEMA"):
        with tried(f"{mode}, in parts"):
            assert list(client.chat.completions.create_partial(model=MODEL, messages=messages, response_model=River, max_tokens=300))[-1].name
