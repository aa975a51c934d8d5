"""Plans of memory budgets: drey_plan, whose header says what each member means."""
from dataclasses import dataclass, replace
from typing import Any, List, Tuple, Union

from ._options import Opened
from ._sizes import size_text, size_text_up
from ._statistics import UNLIMITED, Numbers, from_struct


# Members that follow from the machine's speeds, which are measured when a model opens.
PREDICTED = ("read_s", "compute_s", "verify_s", "draft_s", "pass_s", "alone_pass_s", "passes_per_s",
             "ceiling_tokens_per_s", "expected_tokens_per_s")


@dataclass(frozen=True, repr=False)
class Plan(Numbers):
    """The parts of a budget, in bytes unless the name says otherwise. print shows it as a table."""
    budget_bytes: int
    smallest_budget_bytes: int
    target_bytes: int
    pinned_bytes: int
    streamed_bytes_per_pass: int
    lookup_bytes: int
    draft_bytes: int
    ring_bytes: int
    kv_bytes: int
    kv_saved_bytes: int
    draft_kv_bytes: int
    work_bytes: int
    session_bytes: int
    process_bytes: int
    program_bytes: int
    tokenizer_bytes: int
    stack_bytes: int
    queue_bytes: int
    reserve_bytes: int
    spare_bytes: int
    kv: str
    budget_is_estimate: bool
    n_tensors_pinned: int
    n_tensors_streamed: int
    n_context: int
    n_sessions: int
    prompt_chunk: int
    tree_rows: int
    n_threads: int
    sidecar: bool
    sidecar_refused: str
    read_s: float
    compute_s: float
    verify_s: float
    draft_s: float
    pass_s: float
    alone_pass_s: float
    passes_per_s: float
    ceiling_tokens_per_s: float
    draft_ids: int
    expected_tokens_per_s: float
    front_layers: int
    held_bytes: int
    prefix_bytes: int
    encoder_bytes: int
    cross_kv_bytes: int
    state_bytes: int
    expert_bytes: int
    n_experts: int
    expert_slots: int
    expert_layers: int
    experts_used: int
    expert_hits: float
    route_tokens: int
    kv_window: int
    kv_file_bytes: int
    kv_read_bytes: int
    verdict: str = ""  # what to expect, in a sentence

    def budget_text(self) -> str:
        """"2.00G", or "unlimited"."""
        return "unlimited" if self.budget_bytes == UNLIMITED else size_text(self.budget_bytes)

    def __str__(self) -> str:
        lines = [self.verdict] if self.verdict else []
        lines += ["memory plan: budget %s (smallest %s%s, for a context of %d)" % (
            self.budget_text(), size_text_up(self.smallest_budget_bytes),
            " with this draft" if self.tree_rows > 1 and self.draft_bytes else "", self.n_context)]
        lines += ["  %-24s %8s  %s" % (name, size_text(n), note) for name, n, note in self._parts() if n]
        lines.append("target: %s%s" % (size_text(self.target_bytes),
                                       ", its weights packed in its sidecar" if self.sidecar else ""))
        lines += ["  %-24s %8s  %s" % (name, size_text(n), note) for name, n, note in self._target() if n]
        return "\n".join(line.rstrip() for line in lines)

    def _parts(self) -> List[Tuple[str, int, str]]:
        window = "of the last %d of %d positions" % (self.kv_window, self.n_context)
        kept = window if self.kv_window else "of %d positions" % self.n_context
        return [("program and libraries", self.program_bytes, ""),
                ("headers, tokenizers", self.tokenizer_bytes, "of the models"),
                ("stacks", self.stack_bytes, "of %d threads" % self.n_threads),
                ("read queues", self.queue_bytes, "with what the kernel takes for them"),
                ("ring", self.ring_bytes, "where reads arrive"),
                ("cache, target", self.kv_bytes - self.draft_kv_bytes - self.cross_kv_bytes - self.state_bytes,
                 "keys and values %s%s" % (kept, ", q8_0" if self.kv == "q8_0" else "")),
                ("cache, states", self.state_bytes, "newest and older ones, to go back to"),
                ("cache, draft", self.draft_kv_bytes, "the same"),
                ("cache, input", self.cross_kv_bytes, "keys and values of what encoders read"),
                ("encoder", self.encoder_bytes, "its reads, and rows of a whole input"),
                ("work", self.work_bytes, "activations, logits; %d rows in a prompt pass" % self.prompt_chunk),
                ("texts, requests", self.held_bytes, ""),
                ("prefixes", self.prefix_bytes, "kept for texts that begin alike"),
                ("page tables, reserve", self.reserve_bytes, "the kernel's part, and rounding"),
                ("draft", self.draft_bytes, "weights in memory"),
                ("target, pinned", self.pinned_bytes, "%d tensors%s" % (
                    self.n_tensors_pinned, ", and a part of each other" if self.n_tensors_streamed else "")),
                ("target, experts", self.expert_bytes, "slots for %d of %d experts" % (self.expert_slots,
                                                                                       self.n_experts)),
                ("spare", self.spare_bytes, "")]

    def _target(self) -> List[Tuple[str, int, str]]:
        streamed = ("for a token, %.0f %% of whose %d experts in a layer are expected in slots" % (
            100 * self.expert_hits, self.experts_used) if self.n_experts else
                    "of %d tensors, read in every pass" % self.n_tensors_streamed)
        return [("pinned", self.pinned_bytes, "stay in memory"),
                ("experts", self.expert_bytes, "slots for %d of %d" % (self.expert_slots, self.n_experts)),
                ("streamed", self.streamed_bytes_per_pass, streamed),
                ("looked up", self.lookup_bytes, "rows read when a token asks for them"),
                ("keys and values, read", self.kv_read_bytes, "in every pass after a full context")]


def plan(target: Any, *, memory: Union[str, int, float] = "auto", **options: Any) -> Plan:
    """The plan of a budget, without loading anything. Options as for Model.

        print(drey.plan("big.gguf", memory="2G"))
    """
    with Opened(target, memory=memory, **options) as opened:
        return replace(from_struct(Plan, opened.outlook.plan), verdict=opened.verdict)
