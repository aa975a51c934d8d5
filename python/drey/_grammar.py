"""Forms that texts are held to."""
import json
from typing import Any, Dict, List, Optional, Sequence, Union, TYPE_CHECKING

from ._arguments import as_json, encoded
from ._errors import UsageError, check, new_error
from ._held import Held
from ._library import ffi, lib

if TYPE_CHECKING:
    from ._model import Model


_KINDS = {lib.DREY_GRAMMAR_JSON_SCHEMA: "json_schema", lib.DREY_GRAMMAR_GBNF: "gbnf",
          lib.DREY_GRAMMAR_REGEX: "regex", lib.DREY_GRAMMAR_CHOICES: "choices"}


class Grammar(Held):
    """The form of a text: a JSON schema (a dict, or its text), GBNF, a regular expression, or choices.
    `not_held` has the places of what no grammar can hold of a schema ("/properties/ids/uniqueItems");
    with strict=True such a schema is refused.

        form = model.grammar(json_schema={"type": "object", "properties": {"age": {"type": "integer"}}})
        text = model.complete("A person as JSON: ", grammar=form)
    """
    _name = "grammar"

    def __init__(self, model: "Model", *, json_schema: Union[None, str, Dict[str, Any]] = None,
                 gbnf: Optional[str] = None, regex: Optional[str] = None,
                 choices: Optional[Sequence[str]] = None, strict: bool = False) -> None:
        given = [(lib.DREY_GRAMMAR_JSON_SCHEMA, json_schema), (lib.DREY_GRAMMAR_GBNF, gbnf),
                 (lib.DREY_GRAMMAR_REGEX, regex), (lib.DREY_GRAMMAR_CHOICES, choices)]
        given = [(kind, value) for kind, value in given if value is not None]
        if len(given) != 1:
            raise UsageError("a grammar is made of one of json_schema, gbnf, regex and choices")
        kind: int = given[0][0]
        value: Any = given[0][1]
        value = value.model_json_schema() if hasattr(value, "model_json_schema") else value  # of pydantic
        self._about = "%s %.60s" % (_KINDS[kind], value if isinstance(value, str) else json.dumps(value, default=repr))
        text = encoded(value, "a grammar") if isinstance(value, str) else as_json(value, "a grammar")
        kind |= lib.DREY_GRAMMAR_STRICT if strict else 0
        self._grammar = ffi.new("drey_grammar **")
        engine = engine_of(model, "a grammar")
        super().__init__(engine)
        err = new_error()
        try:
            with self._using(), engine.opening_grammars:
                check(lib.drey_grammar_open(self._grammar, engine.target, kind, text, len(text), err), err)
                places = ffi.string(lib.drey_grammar_not_held(self._grammar[0])).decode()
            self._check()
            self.not_held: List[str] = places.split(", ") if places else []
        except BaseException:
            self._shut()
            raise

    def __repr__(self) -> str:
        return "<drey.Grammar %s%s>" % (getattr(self, "_about", ""), ": closed" if self._closed else "")

    def _free(self) -> None:
        lib.drey_grammar_close(self._grammar)

    def close(self) -> None:
        """No new text can be held to it. One that is being written keeps it to its end."""
        self._shut()


def engine_of(model: Any, what: str) -> Any:
    """The engine of a Model."""
    engine = getattr(model, "_engine", None)
    if not isinstance(engine, Held):
        raise UsageError("%s is made for a drey.Model, not %.60r" % (what, model))
    return engine
