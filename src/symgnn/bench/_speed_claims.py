"""A measured ratio, and the bound that it should reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from symgnn.bench._measure import Spread


@dataclass(frozen=True)
class SpeedClaim:
    """`what` has this ratio on graphs of this shape; without a bound it is for information."""

    shape: str
    what: str
    ratio: Spread
    bound: float | None = None
    at: Literal["least", "most"] = "most"
    seconds: Mapping[str, float] = field(default_factory=dict)  # medians of what was compared
    note: str = ""
    nodes: int | None = None  # of the graph, where a ratio is drawn against it

    @property
    def reached(self) -> bool | None:
        """Whether the ratio, as it is printed, keeps the bound; None where there is none."""
        if self.bound is None:
            return None
        ratio = float(number(self.ratio.median))
        return ratio >= self.bound if self.at == "least" else ratio <= self.bound

    def to_dict(self) -> dict[str, Any]:
        """In plain numbers, with the verdict."""
        plain = {**asdict(self), "seconds": dict(self.seconds)}
        return {**plain, "ratio": self.ratio._asdict(), "reached": self.reached}


def bound_of(claim: Mapping[str, Any]) -> str:
    """`≤ 1.3`, of a claim as in results.json."""
    sign = {"most": "≤", "least": "≥"}[claim["at"]]
    return "–" if claim["bound"] is None else f"{sign} {claim['bound']:.3g}"


def number(value: float) -> str:
    """A ratio in three digits, or all that it has before its point."""
    return f"{value:.0f}" if abs(value) >= 999.5 else f"{value:#.3g}".rstrip(".")


def missed(results: Mapping[str, Any]) -> list[str]:
    """A line for every claim of results.json that misses its bound."""
    return [
        f"{each['name']}, {claim['shape']}: {claim['what']} is {number(claim['ratio']['median'])}; "
        f"the bound is {bound_of(claim)}"
        for each in results["suites"]
        for claim in each["claims"]
        if claim["reached"] is False
    ]


def summary(claims: list[dict[str, Any]]) -> str:
    """How many bounds were reached, in a sentence."""
    bounded = [claim["reached"] for claim in claims if claim["reached"] is not None]
    if not bounded:
        return "For information: there is no bound."
    return f"{sum(bounded)} of {len(bounded)} bounds reached."
