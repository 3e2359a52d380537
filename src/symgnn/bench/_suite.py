"""A suite of benchmarks, and how suites are run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from symgnn.bench import SUITES, USUAL, suite_named
from symgnn.bench._measure import MissingError, Rounds
from symgnn.bench._speed_claims import SpeedClaim
from symgnn.progress import OnProgress, bar
from symgnn.store import environment, read_json, write_json
from symgnn.train import keep_memory

#: Two rounds without warming up: to see that a suite works.
QUICK = Rounds(repeats=2, least=1, warm_up=0, seconds=1.0)
RESULTS = "results.json"


class SuitePart(NamedTuple):
    """One thing that is measured: the shape of its graphs, and what gives its claims."""

    shape: str
    run: Callable[[Rounds], Iterable[SpeedClaim]]


@dataclass(frozen=True)
class Suite:
    """Things that are measured together; `finding` says what limits them.

    With `kept`, freed memory is kept, as in `symgnn train`; without, the process is as it comes.
    """

    name: str
    finding: str
    parts: Callable[[bool], Sequence[SuitePart]]  # whether quick -> what is measured
    kept: bool = True

    @property
    def title(self) -> str:
        """The comparison in one line."""
        return SUITES[self.name]

    def run(
        self,
        rounds: Rounds,
        quick: bool = False,
        on_progress: OnProgress | None = None,
        shapes: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Its claims as in results.json, on these shapes only if there are any; a part that misses
        something is a note.
        """
        parts = [part for part in self.parts(quick) if not shapes or part.shape in shapes]
        began, done = time.perf_counter(), 0

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

    def configured(self, options: Mapping[str, Any], out: Path | None) -> Suite:
        """The suite with options of its own, and a place for what it keeps; most have none."""
        for name, value in options.items():
            if value not in (None, [], ()):
                raise ValueError(f"--{name}: is {value}, but {self.name} has no such option")
        return self

    def check_shapes(self, shapes: Sequence[str], quick: bool) -> None:
        """A wrong shape is named before anything is measured."""
        known = list(dict.fromkeys(part.shape for part in self.parts(quick)))
        for shape in shapes:
            if shape not in known:
                raise ValueError(
                    f"--shape: is {shape!r}, which {self.name} does not have; "
                    f"choose from {', '.join(known)}"
                )


def run_suites(
    names: Sequence[str],
    *,
    quick: bool = False,
    threads: int | None = None,
    out: Path | None = None,
    shapes: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    on_suite: Callable[[dict[str, Any]], Any] | None = None,
) -> dict[str, Any]:
    """Run suites one after the other; give results.json.

    Those for which memory is not kept come first: it cannot be undone.
    With `out`, each is written to `out/NAME.json` as it ends, and results.json has all that are
    there, those of earlier calls too. Where only some shapes are measured, `out/NAME.json` keeps
    what it has of the others. `options` are those of single suites, by name.
    """
    chosen = [suite_named(name) for name in names or USUAL]  # a wrong name is known at once
    chosen = [each.configured(options or {}, out) for each in chosen]
    for each in chosen:
        each.check_shapes(shapes, quick)
    chosen.sort(key=lambda each: each.kept)
    before, done = torch.get_num_threads(), []
    rounds = replace(QUICK if quick else Rounds(), threads=threads or before)
    torch.set_num_threads(rounds.threads)
    try:
        for each in chosen:
            if each.kept:
                keep_memory()
            with bar(each.name) as on_progress:
                result = each.run(rounds, quick, on_progress, shapes)
            result["environment"] = environment()
            if out is not None:
                before_it = read_json(out / f"{each.name}.json") if shapes else None
                write_json(out / f"{each.name}.json", joined(result, before_it, shapes))
            done.append(result)
            if on_suite is not None:
                on_suite(result)
    finally:
        torch.set_num_threads(before)
    results = {"suites": done}
    if out is not None:
        write_json(out / RESULTS, recorded(out))
    return results


def joined(
    result: dict[str, Any], before: dict[str, Any] | None, shapes: Sequence[str]
) -> dict[str, Any]:
    """A result on some shapes, with what an earlier one has of the others, and at which commit."""
    if before is None or before["quick"] != result["quick"]:
        return result
    kept = [claim for claim in before["claims"] if claim["shape"] not in shapes]
    notes = [note for note in before["notes"] if note.partition(":")[0] not in shapes]
    commit = before["environment"].get("commit")
    of_shapes = dict.fromkeys((claim["shape"] for claim in kept), commit)
    return {
        **result,
        "claims": kept + result["claims"],
        "notes": notes + result["notes"],
        "seconds": before["seconds"] + result["seconds"],
        "earlier": {**of_shapes, **_without(before.get("earlier", {}), shapes)},
    }


def _without(commits: dict[str, Any], shapes: Sequence[str]) -> dict[str, Any]:
    return {shape: commit for shape, commit in commits.items() if shape not in shapes}


def recorded(directory: Path) -> dict[str, Any]:
    """The results of suites in a directory, as in results.json."""
    found = [read_json(directory / f"{name}.json") for name in SUITES]
    return {"suites": [each for each in found if each is not None]}
