"""Suites and results that are made up, for tests of what runs, prints and draws them."""

from collections.abc import Iterator
from typing import Any

from symgnn.bench._measure import MissingError, Rounds, Spread
from symgnn.bench._speed_claims import SpeedClaim
from symgnn.bench._suite import Suite, SuitePart


def claim(ratio: float, bound: float | None = None, at: str = "most", **more: Any) -> SpeedClaim:
    spread = Spread(ratio, 0.9 * ratio, 1.1 * ratio)
    return SpeedClaim("squares", f"this over that, {ratio}", spread, bound, at, **more)  # type: ignore[arg-type]


def good(rounds: Rounds) -> Iterator[SpeedClaim]:
    rounds.count()
    yield claim(1.0, 1.3)
    yield claim(4.2, 4.0, "least", note="a note <here>")
    yield claim(0.5)


def bad(rounds: Rounds) -> Iterator[SpeedClaim]:
    yield claim(2.0, 1.3)


def absent(rounds: Rounds) -> Iterator[SpeedClaim]:
    raise MissingError("its peer is not installed")
    yield


def suite(*runs: Any) -> Suite:
    """Under the name of a real one."""
    return Suite(
        "angles", "What limits it.", lambda quick: [SuitePart("squares", run) for run in runs]
    )


def results(*runs: Any) -> dict[str, Any]:
    made = {"torch": "2.13", "platform": "linux"}
    return {"suites": [{**suite(*runs).run(Rounds()), "environment": made}]}
