"""How tokens are chosen."""
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Sampling:
    """temperature 0 takes the likeliest token, always. One seed gives one text."""
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    seed: int = 0

    def fill(self, out: Any) -> None:
        """Into a drey_sampling."""
        out.temperature = self.temperature
        out.top_k = self.top_k
        out.top_p = self.top_p
        out.min_p = self.min_p
        out.seed = self.seed
