"""Models, and text as tokens."""
import sys
import threading
import weakref
from dataclasses import replace
from typing import Any, List, Optional, Sequence, Tuple, Union

from ._arguments import encoded, numbers
from ._command import ProgressFn, pull
from ._conversation import Conversation, Messages, Wanted, detokenized, ids_of
from ._engine import Engine
from ._errors import UsageError
from ._grammar import Grammar
from ._library import ffi, lib
from ._names import ATTRIBUTES, refuse_unknown
from ._options import ModelInfo
from ._plan import PREDICTED, Plan
from ._session import Session
from ._sizes import size_text
from ._statistics import Statistics, from_struct
from ._texts import Texts
from ._writer import Writer


class Model(Texts):
    """A model's file, with a draft, in one memory budget.

        with drey.Model("big.gguf", memory="2G") as model:
            print(model.complete("The sky is blue because", max_tokens=64))

    target      a GGUF file, or the name of a model that pull has fetched
    draft       "auto" (what is expected to be fastest), a smaller model's file or name, "lookup",
                "medusa", "self", or None
    memory      "2G", "800 MB", "80%" or 0.8 (of the machine's), bytes, "auto" or "unlimited": a bound on
                everything, Python's own memory of the time when it opens included
    context     most tokens of prompt and text (4096, or what the model was made for)
    threads     0: one per core
    sessions    how many may be open at the same time, the model's own included
    policy, kv, cpu, fallback, ahead, alpha, fallback_step, bld_fallback, bld_rollback
                as the options of `drey run`; 0 or left out: as is usual
    progress    a function of (what, done, total): "load target" and "load draft" in bytes, "prompt" in
                tokens
    verbose     shows the plan, a bar while it loads and reads, and what each text cost, on standard error

    Options of texts, which their methods have in common: help(drey.TextOptions).

    Opening plans and takes the memory. The weights are read by the first text, which is slow for that
    reason, or by warm_up(). Any thread may use a model. After close(), and in a process that was forked
    from this one, every call is a UsageError; what was read before stays (why, verdict, info, statistics).
    """

    def __init__(self, target: Any = None, *, draft: Any = "auto", memory: Union[str, int, float] = "auto",
                 context: Optional[int] = None, threads: int = 0, sessions: int = 1, policy: str = "auto",
                 kv: str = "f16", cpu: Optional[str] = None, fallback: str = "mean",
                 progress: Optional[ProgressFn] = None, verbose: bool = False, **drafting: float) -> None:
        self._usual: Optional[Writer] = None
        self._making_usual = threading.RLock()
        self._engine = Engine(target, progress, bool(verbose), draft=draft, memory=memory, context=context,
                              threads=threads, sessions=sessions, policy=policy, kv=kv, cpu=cpu, fallback=fallback,
                              **drafting)
        if verbose:
            print(self.plan, file=sys.stderr)

    def __getattr__(self, name: str) -> Any:
        """Says what drey calls an attribute that llama-cpp-python has."""
        here = ATTRIBUTES.get(name)
        error = AttributeError("drey.Model has no attribute %r%s" % (name, ": take model.%s" % here if here else ""))
        error.name, error.obj = name, self  # type: ignore[attr-defined]  # Python says which is near
        raise error

    # ---- Fetching ----

    @staticmethod
    def pull(name: str, folder: Any = None, *, draft: bool = False, progress: Optional[ProgressFn] = None) -> str:
        """Downloads a model as `drey pull` does, and returns its file: "OWNER/NAME:QUANT" or
        "OWNER/NAME/FILE.gguf" of Hugging Face, or a URL. What is here already is not fetched again, and
        what broke off is continued. folder: $DREY_MODELS, or the models in the cache folder. draft: with
        the small model that drafts for it.

            path = drey.Model.pull("Qwen/Qwen2.5-7B-Instruct-GGUF:Q4_K_M")
        """
        return pull(name, folder, draft, progress)

    @classmethod
    def from_pretrained(cls, repo_id: str, filename: Optional[str] = None, *, folder: Any = None,
                        **options: Any) -> "Model":
        """pull, and a Model of what came. filename: a file of the repository, or a word of its name between
        asterisks ("*Q4_K_M*"). options: as for Model."""
        if not isinstance(repo_id, str) or not (filename is None or isinstance(filename, str)):
            raise UsageError('from_pretrained takes "OWNER/NAME" and the name of a file, not %.60r'
                             % ((repo_id, filename),))
        name = repo_id
        if filename and "*" in filename:
            word = filename.replace(".gguf", "").strip("*-._")
            if "*" in word or not word:
                raise UsageError('the name of a file has one word between asterisks, as "*Q4_K_M*", not %r' % filename)
            name = "%s:%s" % (repo_id, word)
        elif filename:
            name = "%s/%s" % (repo_id, filename)
        return cls(pull(name, folder, False, options.get("progress")), **options)

    # ---- What it is ----

    @property
    def plan(self) -> Plan:
        """The parts of the budget, and what was expected of it when the model opened, as the verdict says it."""
        out = ffi.new("drey_plan *")
        with self._engine._using():
            lib.drey_engine_plan(self._engine.engine[0], out)
        expected = {name: getattr(self._engine.opened.outlook.plan, name) for name in PREDICTED}
        return replace(from_struct(Plan, out), verdict=self.verdict, **expected)

    @property
    def info(self) -> ModelInfo:
        """Facts of the model's file."""
        return self._engine.opened.info

    @property
    def why(self) -> str:
        """Reason why the draft was chosen; "" if it was named."""
        return self._engine.opened.why

    @property
    def verdict(self) -> str:
        """Sentence on what to expect: what of the model stays in memory, how fast it writes."""
        return self._engine.opened.verdict

    @property
    def closed(self) -> bool:
        return self._engine._closed

    def __repr__(self) -> str:
        about = "%s, %s" % (self.info.name, size_text(self.info.file_bytes))
        if self.closed:
            return "<drey.Model %s: closed>" % about
        try:
            plan = self.plan
        except UsageError:
            return "<drey.Model %s: of another process>" % about
        draft = ", draft %s" % size_text(plan.draft_bytes) if plan.draft_bytes else ""
        return "<drey.Model %s: memory %s, context %d%s>" % (about, plan.budget_text(), plan.n_context, draft)

    # ---- Texts ----

    def session(self) -> Session:
        """A new session. UsageError: there are as many as `sessions` says."""
        return Session(self)

    def _of_texts(self) -> Tuple["Model", Writer]:
        with self._making_usual:
            self._engine._check()
            if self._usual is None or self._usual._closed:
                self._usual = Writer(self._engine)
                self._engine.own_session = weakref.ref(self._usual)
            return self, self._usual

    def cancel(self) -> None:
        self._engine._check()
        if self._usual and not self._usual._closed:
            self._usual.cancel()

    def _session(self) -> Session:
        return Session(self, self._of_texts()[1])

    def warm_up(self) -> None:
        """Reads the weights now, by a text of one token that is forgotten; otherwise the first text does.
        What the model's own session had is forgotten as well."""
        self.complete(self.tokenize("a"), max_tokens=1)
        self.reset()

    @property
    def statistics(self) -> Optional[Statistics]:
        """Statistics of the last text of the model's own session."""
        return self._usual.statistics if self._usual else None

    def grammar(self, **form: Any) -> Grammar:
        """See Grammar."""
        refuse_unknown(form, ("json_schema", "regex", "choices", "gbnf", "strict"), "grammar()")
        return Grammar(self, **form)

    # ---- Tokens ----

    def tokenize(self, text: Union[str, bytes], *, bos: bool = True, special: bool = False) -> List[int]:
        """Token ids of a text, which may be UTF-8 bytes. special: marks of special tokens in it are those
        tokens."""
        data = text if isinstance(text, bytes) else encoded(text, "a text")
        flags = (lib.DREY_TOKENIZE_BOS if bos else 0) | (lib.DREY_TOKENIZE_SPECIAL if special else 0)
        with self._engine._using():
            return ids_of(len(data) + 2, lambda ids, n, n_ids, err: lib.drey_tokenize(
                self._engine.target, data, len(data), flags, ids, n, n_ids, err))

    def tokenize_chat(self, messages: Messages, tools: Optional[Sequence[Any]] = None) -> List[int]:
        """A conversation by the model's template, up to where the answer begins, or to the end of a
        last message of the assistant, which the answer continues."""
        return Conversation(self._engine, messages, Wanted(tools)).ids

    def detokenize(self, ids: Sequence[int], *, special: bool = False) -> str:
        """The text of token ids. special: with the marks of special tokens."""
        given = numbers("int32_t[]", ids, "ids are whole numbers of 32 bits")
        with self._engine._using():
            return detokenized(self._engine.target, given, lib.DREY_TOKENIZE_SPECIAL if special else 0).decode(
                errors="replace")

    # ---- The end ----

    def close(self) -> None:
        """Closes its sessions and grammars as well. A text that is being written ends there: its next
        piece is a UsageError."""
        self._engine.close()

    def __enter__(self) -> "Model":
        self._engine._check()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
