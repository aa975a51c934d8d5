"""Where a memory budget goes: drey_plan, whose header says what each member means."""
from dataclasses import dataclass
from typing import Any, Union

from ._options import Opened
from ._statistics import from_struct


@dataclass(frozen=True)
class Plan:
    """What a budget buys, in bytes unless the name says otherwise."""
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
    verdict = ""  # of drey.plan: what to expect, in a sentence

    def __str__(self) -> str:
        return self.verdict or repr(self)


def plan(target: str, *, memory: Union[str, int] = "auto", **options: Any) -> Plan:
    """The plan of a budget, without loading anything. Options as for Model."""
    with Opened(target, memory=memory, **options) as opened:
        made = from_struct(Plan, opened.outlook.plan)
        object.__setattr__(made, "verdict", opened.verdict)
        return made
