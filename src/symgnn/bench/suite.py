"""What a suite is, and how suites are run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from symgnn.bench import SUITES, suite_named
from symgnn.bench.claims import Claim
from symgnn.bench.measure import MissingError, Rounds
from symgnn.progress import OnProgress, bar
from symgnn.store import environment, read_json, write_json
from symgnn.train import keep_memory

#: Two rounds without warming up: to see that a suite works.
QUICK = Rounds(repeats=2, least=1, warm_up=0, seconds=1.0)
RESULTS = "results.json"


class Part(NamedTuple):
    """One thing that is measured: the shape of its graphs, and what gives its claims."""

    shape: str
    run: Callable[[Rounds], Iterable[Claim]]


@dataclass(frozen=True)
class Suite:
    """Things that are measured together; `finding` says what limits them.

    With `kept`, freed memory is kept, as in `symgnn train`; without, the process is as it comes.
    """

    name: str
    finding: str
    parts: Callable[[bool], Sequence[Part]]  # whether quick -> what is measured
    kept: bool = True

    @property
    def title(self) -> str:
        """What it compares."""
        return SUITES[self.name]

    def run(
        self, rounds: Rounds, quick: bool = False, on_progress: OnProgress | None = None
    ) -> dict[str, Any]:
        """Its claims as in results.json; a part that misses something is a note."""
        parts, began, done = self.parts(quick), time.perf_counter(), 0

        def on_round() -> None:
            nonlocal done
            done += 1
            if on_progress is not None:
                on_progress(done, len(parts) * rounds.most)

        rounds = replace(rounds, on_round=on_round)
        claims: list[dict[str, Any]] = []
        notes: list[str] = []
        for number, part in enumerate(parts):
            done = number * rounds.most
            try:
                for claim in part.run(rounds):
                    claims.append(claim.to_dict())
            except MissingError as missing:
                notes.append(f"{part.shape}: {missing}")
        return {
            "name": self.name,
            "title": self.title,
            "finding": self.finding,
            "claims": claims,
            "notes": list(dict.fromkeys(notes)),
            "threads": rounds.threads,
            "kept_memory": self.kept,
            "quick": quick,
            "seconds": time.perf_counter() - began,
        }


def run_suites(
    names: Sequence[str],
    *,
    quick: bool = False,
    threads: int | None = None,
    out: Path | None = None,
    on_suite: Callable[[dict[str, Any]], Any] | None = None,
) -> dict[str, Any]:
    """Run suites one after the other; give results.json.

    Those for which memory is not kept come first: it cannot be undone.
    With `out`, each is written to `out/NAME.json` as it ends, and results.json has all that are
    there, those of earlier calls too.
    """
    chosen = [suite_named(name) for name in names or SUITES]  # a wrong name is known at once
    chosen.sort(key=lambda each: each.kept)
    before, done = torch.get_num_threads(), []
    rounds = replace(QUICK if quick else Rounds(), threads=threads or before)
    torch.set_num_threads(rounds.threads)
    try:
        for each in chosen:
            if each.kept:
                keep_memory()
            with bar(each.name) as on_progress:
                result = each.run(rounds, quick, on_progress)
            result["environment"] = environment()
            if out is not None:
                write_json(out / f"{each.name}.json", result)
            done.append(result)
            if on_suite is not None:
                on_suite(result)
    finally:
        torch.set_num_threads(before)
    results = {"suites": done}
    if out is not None:
        write_json(out / RESULTS, recorded(out))
    return results


def recorded(directory: Path) -> dict[str, Any]:
    """What the suites have written into a directory, as in results.json."""
    found = [read_json(directory / f"{name}.json") for name in SUITES]
    return {"suites": [each for each in found if each is not None]}
