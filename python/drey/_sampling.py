"""Choosing of tokens."""
import secrets
from dataclasses import dataclass, fields, replace
from typing import Any, Dict, Mapping, Optional, Union

from ._errors import UsageError
from ._library import ffi, lib
from ._names import refuse_unknown


@dataclass(frozen=True)
class Sampling:
    """Several options of texts in one object: model.generate(..., sampling=drey.Sampling(seed=1)) is
    the same as model.generate(..., seed=1).

    temperature         0 (the default): the likeliest token, always
    top_k, top_p, min_p which tokens may come; 0, 1 and 0: all
    seed                one seed gives one text; None: another text each time
    repeat_penalty, frequency_penalty, presence_penalty, penalty_last_n
                        make tokens less likely that are among the last ones (64; -1: all)
    dry_multiplier, dry_base, dry_allowed_length, dry_penalty_last_n
                        the same of repetitions of several tokens (DRY)
    """
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: Optional[int] = 0
    repeat_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    penalty_last_n: int = 64
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = -1

    def _refuse_others(self) -> None:
        """UsageError: a member is no number."""
        for name in NAMES:
            value, whole = getattr(self, name), isinstance(getattr(Sampling, name), int)
            if value is None and name == "seed":
                continue
            try:
                ffi.new("int64_t[]" if whole else "double[]", [value])
            except TypeError:
                raise UsageError("%s is a %s, not %.60r" % (name, "whole number" if whole else "number",
                                                            value)) from None
            except OverflowError:
                pass  # its own type says more

    def _fill(self, out: Any) -> Any:
        """Fills a drey_sampling. It borrows what is returned."""
        self._refuse_others()
        out.temperature = self.temperature
        out.top_k = max(self.top_k, 0)
        out.top_p = self.top_p
        out.min_p = self.min_p
        out.seed = secrets.randbits(32) if self.seed is None else self.seed
        penalties = ffi.new("drey_penalties *")
        lib.drey_penalties_init(penalties)
        penalties.repeat = self.repeat_penalty
        penalties.frequency = self.frequency_penalty
        penalties.presence = self.presence_penalty
        penalties.last_n = self.penalty_last_n
        penalties.dry_multiplier = self.dry_multiplier
        penalties.dry_base = self.dry_base
        penalties.dry_allowed_length = self.dry_allowed_length
        penalties.dry_last_n = self.dry_penalty_last_n
        if (self.repeat_penalty, self.frequency_penalty, self.presence_penalty, self.dry_multiplier) != (1, 0, 0, 0):
            out.penalties = penalties
        return penalties


NAMES = tuple(field.name for field in fields(Sampling))


def sampling_of(sampling: Union[None, Sampling, Mapping[str, Any]], given: Dict[str, Any]) -> Sampling:
    """A Sampling or a dict of its members, and options of a call, which count more."""
    if sampling is None or isinstance(sampling, Sampling):
        return replace(sampling or Sampling(), **given)
    if not isinstance(sampling, Mapping):
        raise UsageError("sampling is a drey.Sampling(...) or a dict, not %.60r" % (sampling,))
    refuse_unknown(sampling, NAMES, "sampling")
    return Sampling(**{**sampling, **given})
