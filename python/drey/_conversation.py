"""Conversations: messages and tools as the model's template takes them, and answers taken apart by
drey/reply.h. Messages are those of OpenAI's interface; they are rewritten as serve/ask does it."""
import codecs
import json
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Union

from ._arguments import as_json, encoded
from ._engine import Engine
from ._errors import UsageError, check, new_error
from ._library import ffi, lib

Messages = Union[str, Sequence[Dict[str, Any]]]
_CHOICES = {None: lib.DREY_TOOLS_AUTO, "auto": lib.DREY_TOOLS_AUTO, "none": lib.DREY_TOOLS_NONE,
            "required": lib.DREY_TOOLS_REQUIRED, "any": lib.DREY_TOOLS_REQUIRED}
_USUAL_ROLES = ("user", "assistant", "tool", "system", "function")
_PROMPT_END = 24  # tokens, in which some templates open the reasoning


class Wanted(NamedTuple):
    """Wishes for an answer, besides its messages."""
    tools: Optional[Sequence[Any]] = None
    tool_choice: Any = None
    parallel: bool = True
    schema: Any = None  # of the content
    variables: Optional[Mapping[str, Any]] = None  # of the template


class Conversation:
    """A conversation as token ids (`ids`), and how the answer is written."""

    def __init__(self, engine: Engine, messages: Messages, wanted: Wanted = Wanted()) -> None:
        self._engine, self._kept = engine, []  # type: ignore[var-annotated]
        self.form = ffi.new("drey_reply_form *")
        self._options, self._request = ffi.new("drey_reply_options *"), ffi.new("drey_chat_request *")
        lib.drey_reply_options_init(self._options)
        lib.drey_chat_request_init(self._request)
        given = [dict(message) for message in checked_messages(messages)]
        self._take_wanted(wanted)
        self._take_beginning(given)
        self._find_form()
        described = self._describe_tools(wanted.tools)
        self._request.messages_json = self._keep(as_json(self._rewritten(given, described), "messages"))
        self.ids = self._encode()
        self._end_form()

    def _keep(self, text: bytes) -> Any:
        self._kept.append(ffi.new("char[]", text))
        return self._kept[-1]

    # ---- What is asked for ----

    def _take_wanted(self, wanted: Wanted) -> None:
        o, choice = self._options, wanted.tool_choice
        if isinstance(choice, Mapping):
            name = choice["function"].get("name") if isinstance(choice.get("function"), Mapping) else None
            o.tool = self._keep(encoded(name, "the name of the tool in tool_choice"))
            choice = "required"
        if not (choice is None or isinstance(choice, str)) or choice not in _CHOICES:
            raise UsageError('tool_choice is "none", "auto", "required" or {"type": "function", "function": {"name": '
                             '...}}, not %.60r' % (wanted.tool_choice,))
        o.choice = _CHOICES[choice]
        o.one_call = not wanted.parallel
        if wanted.schema is not None:
            schema = wanted.schema
            o.schema_json = self._keep(schema.encode() if isinstance(schema, str) else as_json(schema, "the schema"))
        if wanted.tools:
            self._request.tools_json = self._keep(as_json(list(wanted.tools), "tools"))
        self._tools = self._request.tools_json
        self._request.variables_json = self._keep(as_json({"enable_thinking": True, **(wanted.variables or {})},
                                                          "chat_template_kwargs"))

    def _take_beginning(self, messages: List[Dict[str, Any]]) -> None:
        """A last message of the assistant is the beginning of the answer."""
        last = messages[-1]
        self._request.continues = last.get("role") == "assistant" and not last.get("tool_calls")
        if not self._request.continues:
            return
        if len(messages) > 1 and messages[-2].get("role") == "assistant":
            raise UsageError("the last two messages are the assistant's: it is not clear which of them the answer "
                             "continues; make one of them")
        reasoning = last.get("reasoning_content")
        if text_of(last):
            self._options.begun = lib.DREY_BEGUN_CONTENT
        elif reasoning:
            self._options.begun = lib.DREY_BEGUN_REASONING
            last["content"] = None

    # ---- How the model writes it ----

    def _find_form(self) -> None:
        err = new_error()
        with self._engine._using():
            check(lib.drey_reply_form_find(self.form, self._engine.target, self._request, self._options, err), err)

    def _describe_tools(self, tools: Optional[Sequence[Any]]) -> str:
        """Returns what a system message says of tools where the template does not list them; ""."""
        if not self.form.described or not tools:
            return ""
        text, n, err = ffi.new("char **"), ffi.new("size_t *"), new_error()
        self._request.tools_json = ffi.NULL
        check(lib.drey_reply_tools_text(self.form, self._tools, text, n, err), err)
        return _freed(text)

    def _rewritten(self, messages: List[Dict[str, Any]], described: str) -> List[Dict[str, Any]]:
        if described and messages[0].get("role") != "system":
            messages = [{"role": "system", "content": described}, *messages]
        elif described:
            messages = [{**messages[0], "content": text_of(messages[0]) + described}, *messages[1:]]
        out: List[Dict[str, Any]] = []
        results: List[str] = []  # of tools, one after the other
        for message in [*messages, None]:
            if message and message.get("role") == "tool" and self.form.in_words:
                results.append("<tool_response>\n%s\n</tool_response>\n" % text_of(message))
                continue
            if results:
                out.append({"role": "user", "content": "".join(results)})
                results = []
            if message:
                out.append(self._message(message))
        return out

    def _message(self, message: Dict[str, Any]) -> Dict[str, Any]:
        """Returns the message with its content as text, and its calls as the template takes
        them."""
        out = {**message, "role": self._role(message)}
        text, calls = text_of(message), out.pop("tool_calls", None)
        if calls and self.form.in_words:
            text += "".join('\n<tool_call>\n{"name": %s, "arguments": %s}\n</tool_call>' % (
                json.dumps(_function(call).get("name"), ensure_ascii=False), _arguments_text(call)) for call in calls)
        elif calls:
            out["tool_calls"] = [self._call(call) for call in calls]
        if calls and not text and message.get("reasoning_content"):
            out.setdefault("thinking", message["reasoning_content"])  # gpt-oss's name for it
        if not (self._options.begun == lib.DREY_BEGUN_REASONING and message.get("content", "") is None):
            out["content"] = text
        return out

    def _call(self, call: Any) -> Any:
        """Templates want an object of arguments, and clients send its text."""
        function = _function(call)
        arguments = function.get("arguments")
        if self.form.text_arguments or not isinstance(arguments, str):
            return call
        try:
            return {**call, "function": {**function, "arguments": json.loads(arguments)}}
        except ValueError:
            return call

    def _role(self, message: Dict[str, Any]) -> str:
        """A developer's instructions are the system's where the template has no other place for them."""
        role = message.get("role")
        if not isinstance(role, str) or (role not in _USUAL_ROLES and role != "developer" and
                                         not self._template_has(role)):
            raise UsageError('the role of a message is "system", "user", "assistant" or "tool", not %.60r' % (role,))
        if role in ("user", "system", "developer") and message.get("content") is None:
            raise UsageError('a message with the role "%s" needs a "content"' % role)
        return "system" if role == "developer" and not self._template_has(role) else role

    def _template_has(self, role: str) -> bool:
        text, n = ffi.new("const char **"), ffi.new("size_t *")
        with self._engine._using():
            if self._tools:
                lib.drey_model_named_template(self._engine.target, b"tool_use", text, n)
            if not n[0]:
                lib.drey_model_chat_template(self._engine.target, text, n)
            template = ffi.buffer(text[0], n[0])[:] if n[0] else b""
        return any(quote + role.encode() + quote in template for quote in (b"'", b'"'))

    # ---- Tokens, and the answer's form ----

    def _encode(self) -> List[int]:
        guess = 256 + sum(len(text) for text in self._kept)
        with self._engine._using():
            return ids_of(guess, lambda ids, n, n_ids, err: lib.drey_chat_encode(
                self._engine.target, self._request, lib.DREY_TOKENIZE_BOS, ids, n, n_ids, err))

    def _end_form(self) -> None:
        with self._engine._using():
            end = detokenized(self._engine.target, self.ids[-_PROMPT_END:], lib.DREY_TOKENIZE_SPECIAL)
        lib.drey_reply_form_prompt(self.form, end, len(end))
        if self._options.begun == lib.DREY_BEGUN_CONTENT:
            if self.form.required:
                raise UsageError("tool_choice asks for a call, but the last message is the beginning of the answer")
            self.form.calls = False

    @property
    def has_calls(self) -> bool:
        return bool(self.form.calls)

    def gbnf(self) -> Optional[str]:
        """The grammar of the answer; None: any text, or the schema alone says it."""
        marked = (self.form.reasons or self.form.special) and self._options.begun != lib.DREY_BEGUN_CONTENT
        if not self.form.calls and not (marked and self._options.schema_json):
            return None
        request = ffi.new("drey_chat_request *")
        lib.drey_chat_request_init(request)
        request.tools_json = self._tools
        text, n, err = ffi.new("char **"), ffi.new("size_t *"), new_error()
        with self._engine._using(), self._engine.opening_grammars:
            check(lib.drey_reply_grammar(self.form, self._engine.target, request, self._options, text, n, err), err)
        return _freed(text) if text[0] else None


class Part(NamedTuple):
    """A part of an answer: see drey_reply_kind."""
    kind: int
    call: int
    text: str


class Reader:
    """Takes an answer apart while it is written."""

    def __init__(self, conversation: Conversation) -> None:
        self._reader = ffi.new("drey_reply_reader *")
        lib.drey_reply_begin(self._reader, conversation.form)
        self._parts: List[Part] = []
        self._decoders: Dict[Any, Any] = {}
        self._failed: List[BaseException] = []
        self._take = ffi.callback("drey_reply_fn", self._on_part,
                                  onerror=lambda kind, error, trace: self._failed.append(error))

    def _on_part(self, _user: Any, part: Any) -> None:
        of = part.kind, part.call
        decoder = self._decoders.setdefault(of, codecs.getincrementaldecoder("utf-8")("replace"))
        text = decoder.decode(ffi.buffer(part.bytes, part.n_bytes)[:] if part.n_bytes else b"")
        if text or part.kind in (lib.DREY_REPLY_CALL, lib.DREY_REPLY_CALL_END):
            self._parts.append(Part(part.kind, part.call, text))

    def read(self, data: bytes) -> List[Part]:
        lib.drey_reply_read(self._reader, data, len(data), self._take, ffi.NULL)
        return self._taken()

    def end(self) -> List[Part]:
        lib.drey_reply_end(self._reader, self._take, ffi.NULL)
        return self._taken()

    def _taken(self) -> List[Part]:
        if self._failed:  # as by a signal handler
            raise self._failed[0]
        taken, self._parts = self._parts, []
        return taken

    @property
    def n_calls(self) -> int:
        return int(self._reader.n_calls)


# ---- Messages ----

def checked_messages(messages: Any) -> Sequence[Dict[str, Any]]:
    """A list of messages; a text is one of the user."""
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    if not isinstance(messages, (list, tuple)) or not messages or not all(isinstance(m, dict) for m in messages):
        raise UsageError('messages are a text, or a list of {"role": ..., "content": ...}, not %.60r' % (messages,))
    return messages


def text_of(message: Dict[str, Any]) -> str:
    """The content, which may be a list of OpenAI's parts of text, with a newline between them."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, (list, tuple)):
        raise UsageError("the content of a message is a text or a list of parts, not %.60r" % (content,))
    for part in content:
        if not isinstance(part, dict) or part.get("type") != "text" or not isinstance(part.get("text"), str):
            raise UsageError('parts of a message are {"type": "text", "text": ...}: models here read nothing else; '
                             "not %.60r" % (part,))
    return "\n".join(part["text"] for part in content)


def _function(call: Any) -> Dict[str, Any]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise UsageError('tool_calls are a list of {"id": ..., "type": "function", "function": {"name": ..., '
                         '"arguments": ...}}, not %.60r' % (call,))
    return function


def _arguments_text(call: Any) -> str:
    arguments = _function(call).get("arguments", "{}")
    return arguments if isinstance(arguments, str) else as_json(arguments, "arguments").decode()


# ---- Memory of the library ----

def _freed(text: Any) -> str:
    """The text in a char **, which is freed."""
    try:
        return ffi.string(text[0]).decode(errors="replace")
    finally:
        lib.drey_free(text[0])


def ids_of(guess: int, call: Any) -> List[int]:
    """Token ids from a function that says how many there are."""
    while True:
        ids, n, err = ffi.new("int32_t[]", guess), ffi.new("size_t *"), new_error()
        status = call(ids, guess, n, err)
        if status == lib.DREY_OK or n[0] <= guess:
            check(status, err)
            return list(ids[0:n[0]])
        guess = n[0]


def detokenized(target: Any, ids: Any, flags: int) -> bytes:
    """The bytes of tokens (a list, or an array of int32_t)."""
    given = ffi.new("int32_t[]", ids) if isinstance(ids, list) else ids
    capacity = 64 * len(given) + 64
    while True:
        out, n, err = ffi.new("char[]", capacity), ffi.new("size_t *"), new_error()
        status = lib.drey_detokenize(target, given, len(given), flags, out, capacity, n, err)
        if status == lib.DREY_OK or n[0] <= capacity:
            check(status, err)
            return ffi.buffer(out, n[0])[:]
        capacity = n[0]
