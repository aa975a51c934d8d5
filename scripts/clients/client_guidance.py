"""guidance: as an OpenAI server, and as a vLLM server, which it gives its grammars."""
from guidance import assistant, gen, json, models, select, user
from pydantic import BaseModel, Field

from tried import KEY, MODEL, URL, tried


class River(BaseModel):
    name: str = Field(max_length=30)
    length_km: int


plain = models.OpenAI(MODEL, base_url=f"{URL}/v1", api_key=KEY, timeout=600, echo=False)
with tried("OpenAI: gen"):
    with user():
        lm = plain + "Name a river."
    with assistant():
        lm += gen("name", max_tokens=30)
    assert lm["name"]
with tried("OpenAI: json"):
    with user():
        lm = plain + "Describe the river Rhine: its name, its length in km."
    with assistant():
        lm += json("river", schema=River, max_tokens=200)
    assert River.model_validate_json(lm["river"]).name
grammars = models.experimental.VLLMModel(MODEL, base_url=f"{URL}/v1", api_key=KEY, echo=False)
with tried("VLLMModel: select"):
    with user():
        lm = grammars + "Is the sky blue or red?"
    with assistant():
        lm += select(["blue", "red"], name="colour")
    assert lm["colour"] in ("blue", "red")
with tried("VLLMModel: gen with a pattern"):
    with user():
        lm = grammars + "In which year did the wall fall?"
    with assistant():
        lm += gen("year", regex="[0-9]{4}")
    assert len(lm["year"]) == 4
