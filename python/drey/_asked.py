"""Options of texts: of generate, chat, complete and OpenAI's calls."""
import functools
import inspect
import math
from dataclasses import dataclass
from typing import Any, Callable, Collection, List, Mapping, Optional, Sequence, Tuple, TypedDict, TypeVar, Union

from ._arguments import numbers, terminated
from ._errors import UsageError
from ._grammar import Grammar
from ._names import refuse_unknown
from ._sampling import NAMES as SAMPLED, Sampling, sampling_of

F = TypeVar("F", bound=Callable[..., Any])
TO_THE_END = 0x7FFFFFFF  # tokens
MOST_LIKELY = 20  # tokens with their log probabilities, at each place


class TextOptions(TypedDict, total=False):
    """Options of a text. Those from temperature to dry_penalty_last_n are in Sampling as well.

    max_tokens      most tokens to write; None: to the end of the context
    temperature     0 (the default): the likeliest token, always
    top_p, top_k, min_p, seed
                    as everywhere; one seed gives one text, None another one each time
    repeat_penalty, frequency_penalty, presence_penalty, ...
                    as in Sampling
    stop            a text, or a list of texts, that end the text and are not written
    logit_bias      {token id: number}, which is added to its logit; False: never this one
    json_schema, regex, choices, gbnf
                    the form of the text, as in model.grammar(...); one of them, or:
    grammar         a form for several texts, made by model.grammar(...)
    response_format OpenAI's {"type": "json_object"} or {"type": "json_schema", "json_schema": {"schema":
                    {...}}}, or a pydantic model
    ignore_eos      write on where the model would end
    sampling        a Sampling or a dict of its members
    """
    max_tokens: Optional[int]
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    seed: Optional[int]
    repeat_penalty: float
    frequency_penalty: float
    presence_penalty: float
    penalty_last_n: int
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_penalty_last_n: int
    stop: Union[None, str, Sequence[str]]
    logit_bias: Optional[Mapping[Any, Any]]
    json_schema: Any
    regex: Optional[str]
    choices: Optional[Sequence[str]]
    gbnf: Optional[str]
    grammar: Optional[Grammar]
    response_format: Any
    ignore_eos: bool
    sampling: Union[None, Sampling, Mapping[str, Any]]


_USUAL = {"max_tokens": 512, "stop": None, "logit_bias": None, "json_schema": None, "regex": None,
          "choices": None, "gbnf": None, "grammar": None, "response_format": None, "ignore_eos": False,
          "sampling": None, **{name: getattr(Sampling(), name) for name in SAMPLED}}


def takes_text_options(max_tokens: Optional[int] = 512) -> Callable[[F], F]:
    """Shows in help() and in editors what **options stands for. max_tokens: what is usual."""
    def show(function: F) -> F:
        own = inspect.signature(function)

        @functools.wraps(function)
        def call(self: Any, *given: Any, **options: Any) -> Any:
            if len(given) > 1:
                raise UsageError("options are given by their names, as max_tokens=%s: not %.60r alone" % (
                    given[1] if isinstance(given[1], int) else 64, given[1]))
            return function(self, *given, **options)
        usual = {**_USUAL, "max_tokens": max_tokens}
        kept = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=usual[name])  # kinds would be
                for name in TextOptions.__annotations__]  # a screen of help() for each method
        call.__signature__ = own.replace(parameters=kept + more)  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]
    return show


@dataclass
class Asked:
    """The options, checked. A grammar that was made for this text ends with it."""
    max_tokens: int
    sampling: Sampling
    stops: List[bytes]
    biases: List[Tuple[int, float]]
    grammar: Optional[Grammar]
    ignore_eos: bool
    special: bool = False  # tokens that are marks are written out
    n_top: int = -1  # tokens at each place whose log probabilities are wanted; -1: not even the written one's


def read(options: Mapping[str, Any], model: Any, of: str, more: Collection[str] = ()) -> Asked:
    """more: what `of`, which is named in messages, accepts in addition."""
    refuse_unknown(options, [*TextOptions.__annotations__, *more], of)
    given = {name: options[name] for name in SAMPLED if name in options}
    form, grammar = schema_of(options), options.get("grammar")
    if form:
        grammar = Grammar(model, json_schema=form[0], strict=form[1])
    for name in ("regex", "choices", "gbnf"):
        if options.get(name) is not None:
            grammar = Grammar(model, **{name: options[name]})
    return Asked(_length(options.get("max_tokens", 512)), sampling_of(options.get("sampling"), given),
                 _stops(options.get("stop")), _biases(options.get("logit_bias")), grammar,
                 bool(options.get("ignore_eos")))


def _length(max_tokens: Any) -> int:
    if max_tokens is None:
        return TO_THE_END
    n = int(numbers("int32_t *", max_tokens, "max_tokens is a number of tokens, or None for all that have room")[0])
    return TO_THE_END if n == -1 else n


def _stops(stop: Any) -> List[bytes]:
    if stop is None:
        return []
    if not isinstance(stop, (str, list, tuple)):
        raise UsageError("stop is a text, or a list of texts, not %.60r" % (stop,))
    return [terminated(text, "a stop text") for text in ([stop] if isinstance(stop, str) else stop)]


def _biases(given: Any) -> List[Tuple[int, float]]:
    if given is None:
        return []
    try:
        return [(int(numbers("int32_t *", int(token), "a token is a number")[0]),
                 -math.inf if bias is False else float(bias)) for token, bias in given.items()]
    except (AttributeError, TypeError, ValueError):
        raise UsageError("logit_bias is {token id: number, or False for never}, not %.60r" % (given,)) from None


def schema_of(options: Mapping[str, Any]) -> Optional[Tuple[Any, bool]]:
    """The JSON schema that the options ask for, and whether it is strict; None: they ask for none.
    UsageError: they ask for two forms."""
    form, schema = _response_schema(options.get("response_format")), options.get("json_schema")
    given = ["response_format"] if form else []
    given += [name for name in ("json_schema", "regex", "choices", "gbnf", "grammar") if options.get(name) is not None]
    if len(given) > 1:
        raise UsageError("%s and %s both say what form the text has: give one of them" % (given[0], given[1]))
    if schema is not None:
        return schema.model_json_schema() if hasattr(schema, "model_json_schema") else schema, False
    return form


def _response_schema(response_format: Any) -> Optional[Tuple[Any, bool]]:
    wanted = response_format
    if wanted is None:
        return None
    if hasattr(wanted, "model_json_schema"):
        return wanted.model_json_schema(), False
    kind = wanted.get("type") if isinstance(wanted, Mapping) else None
    if kind == "text":
        return None
    described = wanted.get("json_schema", {}) if kind in ("json_object", "json_schema") else None
    if not isinstance(described, Mapping):
        raise UsageError('response_format is {"type": "json_object"}, {"type": "json_schema", "json_schema": '
                         '{"schema": {...}}}, or a pydantic model, not %.60r' % (wanted,))
    schema = described.get("schema", wanted.get("schema"))
    if schema is None and (kind == "json_schema" or "json_schema" in wanted):
        raise UsageError('response_format has no schema: {"type": "json_schema", "json_schema": {"schema": {...}}}')
    return {"type": "object"} if schema is None else schema, described.get("strict") is True
