"""Answers as OpenAI's interface has them, which drey serve gives as well: dicts."""
import time
import uuid
from typing import Any, Dict, Iterator, List, Optional, Sequence

from ._conversation import Conversation, Part, Reader, detokenized
from ._engine import Engine
from ._library import lib, version
from ._statistics import Statistics
from ._writer import Text, Token

Answer = Dict[str, Any]
_FAR = -9999.0  # JSON has no -Infinity


class Front:
    """The members with which all parts of an answer begin, and the tokens' texts."""

    def __init__(self, engine: Engine, prefix: str, kind: str) -> None:
        self._engine = engine
        self._members = {"id": prefix + uuid.uuid4().hex, "object": kind, "created": int(time.time()),
                         "model": engine.opened.info.name, "system_fingerprint": "drey-" + version()}

    def __call__(self, choice: Optional[Answer], **more: Any) -> Answer:
        return {**self._members, "choices": [] if choice is None else [choice], **more}

    def token_bytes(self, token: int) -> bytes:
        flags = lib.DREY_TOKENIZE_SPECIAL | lib.DREY_TOKENIZE_INNER
        with self._engine._using():
            return detokenized(self._engine.target, [token], flags)

    def token_text(self, token: int) -> str:
        """Text of a token without parts of characters that other tokens have the rest of."""
        return self.token_bytes(token).decode(errors="ignore")

    def token_name(self, token: int) -> str:
        """Its text, or where that is no whole characters its bytes: "bytes:\\xe2\\x80"."""
        data = self.token_bytes(token)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join("\\x%02x" % byte for byte in data)


def usage(n_prompt: int, statistics: Statistics) -> Answer:
    written = statistics.generated_tokens
    return {"prompt_tokens": n_prompt, "completion_tokens": written, "total_tokens": n_prompt + written,
            "prompt_tokens_details": {"cached_tokens": statistics.cached_tokens}}


def finish_word(statistics: Statistics) -> str:
    """OpenAI's two reasons: a text that was interrupted is shorter than asked for."""
    return "stop" if statistics.finish == "stop" else "length"


def _near(logprob: Optional[float]) -> Optional[float]:
    return logprob if logprob is None or logprob >= _FAR else _FAR


# ---- Chats ----

def chat_logprobs(front: Front, tokens: Sequence[Token]) -> Answer:
    def one(token: int, logprob: Optional[float]) -> Answer:
        return {"token": front.token_text(token), "logprob": _near(logprob), "bytes": list(front.token_bytes(token))}
    return {"content": [{**one(t.id, t.logprob), "top_logprobs": [one(*top) for top in t.top]} for t in tokens]}


class ChatAnswer:
    """Parts of an answer, put together."""

    def __init__(self, front: Front, logprobs: bool) -> None:
        self._front, self._logprobs = front, logprobs
        self._texts = {lib.DREY_REPLY_CONTENT: "", lib.DREY_REPLY_REASONING: ""}
        self._calls: List[Answer] = []
        self._tokens: List[Token] = []

    def add(self, parts: Sequence[Part], tokens: Sequence[Token]) -> None:
        self._tokens.extend(tokens)
        for part in parts:
            if part.kind in self._texts:
                self._texts[part.kind] += part.text
            elif part.kind == lib.DREY_REPLY_CALL:
                self._calls.append(new_call(part.text))
            elif part.kind == lib.DREY_REPLY_ARGUMENTS:
                self._calls[part.call]["function"]["arguments"] += part.text

    def whole(self, statistics: Statistics, n_prompt: int) -> Answer:
        content = self._texts[lib.DREY_REPLY_CONTENT]
        message: Answer = {"role": "assistant", "content": None if self._calls and not content else content}
        if self._texts[lib.DREY_REPLY_REASONING]:
            message["reasoning_content"] = self._texts[lib.DREY_REPLY_REASONING]
        if self._calls:
            message["tool_calls"] = self._calls
        return self._front({"index": 0, "message": message,
                            "logprobs": chat_logprobs(self._front, self._tokens) if self._logprobs else None,
                            "finish_reason": chat_finish(statistics, len(self._calls))},
                           usage=usage(n_prompt, statistics))


def new_call(name: str) -> Answer:
    return {"id": uuid.uuid4().hex[:9], "type": "function", "function": {"name": name, "arguments": ""}}


def chat_finish(statistics: Statistics, n_calls: int) -> str:
    """Calls that are whole are why an answer ends; one that was broken off is not."""
    return "tool_calls" if n_calls and statistics.finish == "stop" else finish_word(statistics)


def chat_chunks(front: Front, conversation: Conversation, text: Text, pieces: Iterator[bytes], logprobs: bool,
                with_usage: bool) -> Iterator[Answer]:
    """The answer in pieces, as they are written."""
    reader = Reader(conversation)

    def chunk(delta: Answer, finish: Optional[str] = None) -> Answer:
        tokens = text.take_tokens()
        return front({"index": 0, "delta": delta, "logprobs": chat_logprobs(front, tokens) if tokens else None,
                      "finish_reason": finish})
    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces:
        for part in reader.read(piece):
            if part.kind != lib.DREY_REPLY_CALL_END:
                yield chunk(_delta(part))
    for part in reader.end():
        if part.kind != lib.DREY_REPLY_CALL_END:
            yield chunk(_delta(part))
    statistics = text.statistics_now()
    yield chunk({}, chat_finish(statistics, reader.n_calls))
    if with_usage:
        yield front(None, usage=usage(len(conversation.ids), statistics))


def _delta(part: Part) -> Answer:
    if part.kind == lib.DREY_REPLY_CONTENT:
        return {"content": part.text}
    if part.kind == lib.DREY_REPLY_REASONING:
        return {"reasoning_content": part.text}
    if part.kind == lib.DREY_REPLY_CALL:
        return {"tool_calls": [{"index": part.call, **new_call(part.text)}]}
    return {"tool_calls": [{"index": part.call, "function": {"arguments": part.text}}]}


# ---- Completions ----

class Offsets:
    """Places where tokens begin in a text, in characters."""

    def __init__(self, front: Front, at: int = 0) -> None:
        self._front, self._at = front, at

    def logprobs(self, tokens: Sequence[Token]) -> Answer:
        out: Answer = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
        for token in tokens:
            top = {self._front.token_name(other): _near(logprob) for other, logprob in token.top}
            out["tokens"].append(self._front.token_name(token.id))
            out["token_logprobs"].append(_near(token.logprob))
            out["top_logprobs"].append(top if token.logprob is not None else None)
            out["text_offset"].append(self._at)
            self._at += len(self._front.token_text(token.id))
        return out


def completion_chunks(front: Front, text: Text, pieces: Iterator[str], prompt: str, scored: Sequence[Token],
                      logprobs: bool) -> Iterator[Answer]:
    """prompt, scored: what is echoed; "" and none."""
    offsets = Offsets(front)

    def chunk(piece: str, tokens: Sequence[Token], finish: Optional[str] = None) -> Answer:
        return front({"index": 0, "text": piece, "logprobs": offsets.logprobs(tokens) if logprobs and tokens else None,
                      "finish_reason": finish})
    if prompt:
        yield chunk(prompt, scored)
    for piece in pieces:
        yield chunk(piece, text.take_tokens())
    yield chunk("", text.take_tokens(), finish_word(text.statistics_now()) if text.options.n_predict else "length")
