"""Parts that run here, in processes and on Ray give the same."""

import importlib.util
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from symgnn.cli import main
from symgnn.experiments import TABLES, Local, Ray, Row, engine_named, run_table

ROWS = (Row("DGN", "sum"), Row("SDGN", "sum"), Row("GN", "mean"))
with_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed (symgnn[ray])"
)


def test_jobs_and_cores() -> None:
    assert engine_named("local", 3) == Local(3)
    assert engine_named("local") == Local(os.cpu_count() or 1)


@pytest.mark.parametrize("engine", [["--engine", "ray"], ["--engine", "ray", "--jobs", "2"]])
def test_without_ray_one_line_names_the_extra(
    engine: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["reproduce", "polytopes-3d", *engine, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "pip install symgnn[ray]" in error
    assert error.count("\n") == 1


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A real one, of two workers on this machine."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    options = {"include_dashboard": False, "log_to_driver": False, "logging_level": "error"}
    yield ray.init(num_cpus=2, object_store_memory=100 * 2**20, **options)
    ray.shutdown()


def fails(on_epoch: Callable[..., Any]) -> dict[str, Any]:
    raise ValueError("data: is missing; give it")


def gives(value: int, on_epoch: Callable[..., Any]) -> dict[str, Any]:
    on_epoch()
    return {"value": value}


@with_ray
@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_a_table_on_ray_is_the_table_here(tmp_path: Path) -> None:
    found = [
        run_table(
            TABLES["polytopes-3d"],
            tmp_path / str(k),
            seeds=2,
            epochs=3,
            copies=2,
            rows=ROWS,
            engine=engine,
            console=Console(quiet=True),
        )
        for k, engine in enumerate((Local(), Local(2), Ray(), Ray(most=1)))
    ]
    kept = [[(r["block"], r["cells"], r["curve"]) for r in each["rows"]] for each in found]
    assert kept[1:] == kept[:1] * 3


@with_ray
@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_parts_epochs_and_errors_on_ray() -> None:
    shown: list[int] = []
    parts = {str(k): partial(gives, k) for k in range(5)}
    assert dict(Ray().run(parts, shown.append)) == {str(k): {"value": k} for k in range(5)}
    assert shown == sorted(shown)
    assert shown[-1] <= 5
    with pytest.raises(ValueError, match=r"^data: is missing; give it$"):
        list(Ray().run({"bad": fails, **parts}, shown.append))
