"""Texts, in drey's words and in OpenAI's, as models and sessions have them."""
import sys
from dataclasses import replace
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union, TYPE_CHECKING

from . import _openai
from ._arguments import numbers
from ._asked import MOST_LIKELY, Asked, read, schema_of, takes_text_options
from ._conversation import Conversation, Messages, Reader, Wanted
from ._errors import UsageError
from ._grammar import Grammar
from ._library import ffi, lib
from ._statistics import Statistics
from ._streams import AsyncStream, Stream, awaited, returns_answer
from ._writer import Text, Writer

if TYPE_CHECKING:
    from typing_extensions import Unpack
    from ._asked import TextOptions

Prompt = Union[str, Sequence[int]]
Answer = Dict[str, Any]
# Members of OpenAI's requests that change nothing here.
_IGNORED = ("model", "user", "store", "metadata", "n")


class Completion(str):
    """A text, and how it ended: `finish` is "stop", "length" or "interrupted"."""
    finish: str
    statistics: Statistics


class Texts:
    """Ways to have a text written. See drey.TextOptions for the options, which help() shows."""

    def _of_texts(self) -> Tuple[Any, Writer]:
        """The model, and the session that writes."""
        raise NotImplementedError

    # ---- Texts ----

    @takes_text_options()
    def generate(self, prompt: Prompt, **options: "Unpack[TextOptions]") -> Stream[str]:
        """Continues a prompt (a text, or token ids) and yields the text piece by piece, each as soon as
        it is verified. The text begins with the first piece that is asked for, and ends when the loop
        is left or the stream closed. UsageError: the session is writing another one.

            for piece in model.generate("The sky is blue because", max_tokens=64):
                print(piece, end="", flush=True)
        """
        model, writer = self._of_texts()
        return _strings("generate()", writer, _text(writer, _ids(model, prompt), read(options, model, "generate()")))

    @takes_text_options(None)
    def chat(self, messages: Messages, *, tools: Optional[Sequence[Dict[str, Any]]] = None,
             **options: "Unpack[TextOptions]") -> Stream[str]:
        """Answers a text, or the last of messages ({"role": ..., "content": ...}, where content may be a
        list of OpenAI's parts of text), by the model's own template. A last message of the assistant
        is the beginning of the answer. Yields the answer as the model writes it, to the end of the
        context if max_tokens is not given; create_chat_completion takes reasoning and calls apart.

            for piece in model.chat("What is the capital of France?"):
                print(piece, end="", flush=True)
        """
        model, writer = self._of_texts()
        asked = read(_to_the_end(options), model, "chat()", ("tools",))
        conversation = Conversation(writer.engine, messages, Wanted(tools))
        asked.special = bool(tools) and bool(conversation.form.special)
        return _strings("chat()", writer, _text(writer, conversation.ids, asked))

    @returns_answer
    @takes_text_options()
    def complete(self, prompt: Union[Prompt, Sequence[Dict[str, Any]]],
                 **options: "Unpack[TextOptions]") -> Completion:
        """The whole text that generate yields, or of messages that chat yields, to the end of the context
        if max_tokens is not given: a str that has `finish` and `statistics`.

            text = model.complete("The sky is blue because", max_tokens=64, stop="\\n")
            print(text, text.finish)
        """
        model, writer = self._of_texts()
        is_chat = isinstance(prompt, (list, tuple)) and bool(prompt) and isinstance(prompt[0], dict)
        asked = read(_to_the_end(options) if is_chat else options, model, "complete()")
        ids = Conversation(writer.engine, prompt).ids if is_chat else _ids(model, prompt)  # type: ignore[arg-type]
        text = _text(writer, ids, asked)
        return Stream("complete()", writer, text, _whole_text(writer, text))  # type: ignore[return-value]

    def cancel(self) -> None:
        """Ends the text that is being written, without an error: its loop ends, and its `finish` is
        "interrupted". Any thread may call it."""
        self._of_texts()[1].cancel()

    # ---- As OpenAI's interface and llama-cpp-python have them ----

    @returns_answer
    @takes_text_options()
    def create_completion(self, prompt: Prompt, *, echo: bool = False, logprobs: Optional[int] = None,
                          stream: bool = False, **options: "Unpack[TextOptions]") -> Any:
        """OpenAI's completion as a dict, or with stream=True an iterator of its chunks. The marks of
        special tokens in the prompt are tokens. echo: with the prompt before it; logprobs: of so many of
        the likeliest tokens at each place.

            model("Q: Name the planets. A: ", max_tokens=32, stop=["Q:", "\\n"])["choices"][0]["text"]
        """
        model, writer = self._of_texts()
        asked = read(_without_ignored(options), model, "create_completion()", ("echo", "logprobs", "stream"))
        asked.n_top = _n_top(logprobs, "logprobs")
        ids = _ids(model, prompt, special=True)
        front = _openai.Front(writer.engine, "cmpl-", "text_completion")
        text = _text(writer, ids, asked)
        chunks = self._completion(front, writer, text, model.detokenize(ids) if echo and not isinstance(prompt, str)
                                  else prompt if echo else "", asked)
        if not stream:
            chunks = _whole_completion(front, text, chunks, len(ids), asked.n_top >= 0)
        return Stream("create_completion()", writer, text, chunks)

    @staticmethod
    def _completion(front: _openai.Front, writer: Writer, text: Text, echoed: Any, asked: Asked) -> Iterator[Answer]:
        scored = writer.score(list(text.ids), asked.n_top) if echoed and asked.n_top >= 0 else []
        pieces = _decoded(_pieces(writer, text)) if asked.max_tokens else _nothing()
        try:
            yield from _openai.completion_chunks(front, text, pieces, echoed, scored, asked.n_top >= 0)
        finally:
            pieces.close()  # type: ignore[attr-defined]

    @takes_text_options()
    def __call__(self, prompt: Prompt, *, echo: bool = False, logprobs: Optional[int] = None, stream: bool = False,
                 **options: "Unpack[TextOptions]") -> Any:
        """create_completion."""
        return self.create_completion(prompt, echo=echo, logprobs=logprobs, stream=stream, **options)

    @returns_answer
    @takes_text_options(None)
    def create_chat_completion(self, messages: Messages, *, tools: Optional[Sequence[Dict[str, Any]]] = None,
                               tool_choice: Any = None, parallel_tool_calls: bool = True, logprobs: bool = False,
                               top_logprobs: Optional[int] = None, stream: bool = False,
                               stream_options: Optional[Mapping[str, Any]] = None,
                               reasoning_effort: Optional[str] = None, enable_thinking: Optional[bool] = None,
                               chat_template_kwargs: Optional[Mapping[str, Any]] = None,
                               **options: "Unpack[TextOptions]") -> Any:
        """OpenAI's chat completion as a dict, or with stream=True an iterator of its chunks. Reasoning
        ("reasoning_content") and calls of tools ("tool_calls") are taken apart, and the arguments of calls
        are held to the tools' schemas.

            answer = model.create_chat_completion([{"role": "user", "content": "Hello"}])
            print(answer["choices"][0]["message"]["content"])
        """
        model, writer = self._of_texts()
        form = schema_of(options)
        others = {name: value for name, value in options.items() if name not in ("response_format", "json_schema")}
        asked = read(_without_ignored(_to_the_end(others)), model, "create_chat_completion()", _CHAT_OPTIONS)
        variables = {"reasoning_effort": reasoning_effort, "enable_thinking": enable_thinking,
                     **(chat_template_kwargs or {})}
        conversation = Conversation(writer.engine, messages, Wanted(
            tools, tool_choice, parallel_tool_calls, form[0] if form else None,
            {name: value for name, value in variables.items() if value is not None}))
        if top_logprobs and not logprobs:
            raise UsageError("top_logprobs= needs logprobs=True")
        asked.n_top = _n_top(top_logprobs or 0, "top_logprobs") if logprobs else -1
        asked = _held_to(asked, conversation, model, form)
        text = _text(writer, conversation.ids, asked)
        front = _openai.Front(writer.engine, "chatcmpl-", "chat.completion.chunk" if stream else "chat.completion")
        chunks = (self._chat(front, writer, conversation, text, logprobs,
                             bool((stream_options or {}).get("include_usage")))
                  if stream else _whole_chat(front, writer, conversation, text, logprobs))
        return Stream("create_chat_completion()", writer, text, chunks)

    @staticmethod
    def _chat(front: _openai.Front, writer: Writer, conversation: Conversation, text: Text, logprobs: bool,
              with_usage: bool) -> Iterator[Answer]:
        pieces = _pieces(writer, text)
        try:
            yield from _openai.chat_chunks(front, conversation, text, pieces, logprobs, with_usage)
        finally:
            pieces.close()  # type: ignore[attr-defined]

    # ---- asyncio ----

    @takes_text_options()
    def agenerate(self, prompt: Prompt, **options: "Unpack[TextOptions]") -> AsyncStream[str]:
        """generate for asyncio: passes run in a thread, so that the loop is free meanwhile.

            async for piece in model.agenerate("The sky is blue because"):
                print(piece, end="", flush=True)
        """
        return AsyncStream(self.generate(prompt, **options))

    @takes_text_options(None)
    def achat(self, messages: Messages, *, tools: Optional[Sequence[Dict[str, Any]]] = None,
              **options: "Unpack[TextOptions]") -> AsyncStream[str]:
        """chat for asyncio."""
        return AsyncStream(self.chat(messages, tools=tools, **options))

    acomplete = awaited(complete)
    acreate_completion = awaited(create_completion)
    acreate_chat_completion = awaited(create_chat_completion)

    # ---- Vectors ----

    def embed(self, text: Union[str, Sequence[str]], *, normalize: bool = True, pooling: str = "model") -> Any:
        """The vector of a text, or a list of the vectors of several texts. normalize: of length 1.
        pooling: "model" (as the model's file says), "mean", "cls", "last", or "none": a vector for each
        token.

            a, b = model.embed(["A cat.", "A dog."])
            likeness = sum(x * y for x, y in zip(a, b))
        """
        model, writer = self._of_texts()
        vectors, _ = _vectors(model, writer, text, normalize, pooling)
        return vectors[0] if isinstance(text, str) else vectors

    def create_embedding(self, input: Union[str, Sequence[str]], *, model: Optional[str] = None) -> Answer:
        """OpenAI's list of embeddings as a dict."""
        of, writer = self._of_texts()
        vectors, n_tokens = _vectors(of, writer, input, True, "model")
        return {"object": "list", "model": writer.engine.opened.info.name,
                "data": [{"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)],
                "usage": {"prompt_tokens": n_tokens, "total_tokens": n_tokens}}

    # ---- The text so far ----

    @property
    def tokens(self) -> List[int]:
        """The tokens that the session has: the last prompt, and what was written after it."""
        return self._of_texts()[1].timeline()

    def reset(self) -> None:
        """Forgets the text so far. The weights stay loaded."""
        self._of_texts()[1].reset()

    def save(self, path: Any) -> None:
        """Writes the text so far with what was computed of it to a file."""
        self._of_texts()[1].save(path)

    def load(self, path: Any) -> None:
        """Takes what save has written with the same model: a prompt that begins with the same tokens is
        not read again."""
        self._of_texts()[1].load(path)


_CHAT_OPTIONS = ("tools", "tool_choice", "parallel_tool_calls", "logprobs", "top_logprobs", "stream", "stream_options",
                 "reasoning_effort", "enable_thinking", "chat_template_kwargs")


# ---- Options ----

def _to_the_end(options: Any) -> Any:
    return {"max_tokens": None, **options}


def _without_ignored(options: Any) -> Dict[str, Any]:
    """Returns options without members of OpenAI's requests that change nothing, and with its newer
    name of max_tokens taken as max_tokens."""
    if options.get("n", 1) not in (1, None):
        raise UsageError("n is 1: one call writes one text; take model.session() for each")
    out = {name: value for name, value in options.items() if name not in _IGNORED}
    if "max_completion_tokens" in out:
        out["max_tokens"] = out.pop("max_completion_tokens")
    return out


def _n_top(value: Any, what: str) -> int:
    if value is None or value is False:
        return -1
    n = int(numbers("int32_t *", int(value) if value is True else value, "%s is a number of tokens" % what)[0])
    if not 0 <= n <= MOST_LIKELY:
        raise UsageError("%s is a number of tokens from 0 to %d, not %d" % (what, MOST_LIKELY, n))
    return n


def _ids(model: Any, prompt: Any, special: bool = False) -> Sequence[int]:
    return model.tokenize(prompt, special=special) if isinstance(prompt, (str, bytes)) else prompt  # type: ignore


def _held_to(asked: Asked, conversation: Conversation, model: Any, form: Any) -> Asked:
    """Returns the request with the grammar that the tools and the schema make."""
    if conversation.has_calls and asked.grammar:
        raise UsageError("a grammar contradicts tools, which say how calls are written: give one of the two, or a "
                         "response_format")
    if conversation.has_calls and asked.ignore_eos:
        raise UsageError("ignore_eos contradicts tools: calls end the answer")
    asked = replace(asked, special=bool(conversation.form.special))
    gbnf = conversation.gbnf()
    if gbnf is not None:
        return replace(asked, grammar=Grammar(model, gbnf=gbnf))
    return replace(asked, grammar=Grammar(model, json_schema=form[0], strict=form[1])) if form else asked


# ---- Pieces ----

def _text(writer: Writer, ids: Sequence[int], asked: Asked) -> Text:
    writer._check()
    return Text(writer.engine, ids, asked)


def _pieces(writer: Writer, text: Text) -> Iterator[bytes]:
    done = False
    try:
        writer.begin(text)
        while not done:
            done, pieces = writer.step(text)
            yield from pieces
    finally:
        writer.end(text)
        if writer.engine.verbose and text.result:
            print("\n%s" % text.result, file=sys.stderr)


def _strings(of: str, writer: Writer, text: Text) -> Stream[str]:
    return Stream(of, writer, text, _decoded(_pieces(writer, text)))


def _decoded(pieces: Iterator[bytes]) -> Iterator[str]:
    try:
        for piece in pieces:
            yield piece.decode(errors="replace")
    finally:
        pieces.close()  # type: ignore[attr-defined]


def _nothing() -> Iterator[str]:
    """A text of no tokens: the prompt alone is asked for."""
    yield from ()


# ---- Whole answers, each as a generator of one ----

def _whole_text(writer: Writer, text: Text) -> Iterator[Completion]:
    whole = Completion("".join(_decoded(_pieces(writer, text))))
    whole.statistics = text.statistics_now()
    whole.finish = whole.statistics.finish
    yield whole


def _whole_completion(front: _openai.Front, text: Text, chunks: Iterator[Answer], n_prompt: int,
                      logprobs: bool) -> Iterator[Answer]:
    written = [chunk["choices"][0] for chunk in chunks]
    merged: Optional[Answer] = None
    for lists in [choice["logprobs"] for choice in written if choice["logprobs"]]:
        merged = {name: (merged[name] if merged else []) + lists[name] for name in lists}
    if logprobs and merged is None:
        merged = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
    yield front({"index": 0, "text": "".join(choice["text"] for choice in written), "logprobs": merged,
                 "finish_reason": written[-1]["finish_reason"]}, usage=_openai.usage(n_prompt, text.statistics_now()))


def _whole_chat(front: _openai.Front, writer: Writer, conversation: Conversation, text: Text,
                logprobs: bool) -> Iterator[Answer]:
    reader, answer = Reader(conversation), _openai.ChatAnswer(front, logprobs)
    for piece in _pieces(writer, text):
        answer.add(reader.read(piece), text.take_tokens())
    answer.add(reader.end(), text.take_tokens())
    yield answer.whole(text.statistics_now(), len(conversation.ids))


# ---- Vectors ----

def _vectors(model: Any, writer: Writer, text: Any, normalize: bool, pooling: str) -> Tuple[List[Any], int]:
    texts = [text] if isinstance(text, str) else text
    if not isinstance(texts, (list, tuple)):
        raise UsageError("embed takes a text, or a list of texts, not %.60r" % (text,))
    kind = ffi.new("drey_pooling *")
    if not isinstance(pooling, str) or not lib.drey_pooling_parse(pooling.encode(), kind):
        raise UsageError('pooling is "model", "mean", "cls", "last" or "none", not %.60r' % (pooling,))
    ids = [_ids(model, one, special=True) for one in texts]
    if not all(len(one) for one in ids):
        raise UsageError("the text is empty, which has no vector")
    found = writer.embed(ids, kind[0], writer.engine.opened.info.n_embd, 2 if normalize else -1)
    return [rows if kind[0] == lib.DREY_POOLING_NONE else rows[0] for rows in found], sum(map(len, ids))
