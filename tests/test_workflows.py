"""The workflows of GitHub run what a developer runs, on the versions that pyproject.toml names."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.M))


def commands(path: Path) -> list[str]:
    """The lines that the steps of a workflow run, for each row of their matrix."""
    found = []
    for job in yaml.safe_load(path.read_text())["jobs"].values():
        matrix = job.get("strategy", {}).get("matrix", {})
        for row in matrix.get("include", [{}]):
            for step in job["steps"]:
                line = step.get("run", "")
                for name, value in row.items():
                    line = line.replace(f"${{{{ matrix.{name} }}}}", value)
                found += line.splitlines()
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_their_commands_exist(path: Path) -> None:
    made = [line.removeprefix("make ") for line in commands(path) if line.startswith("make ")]
    assert made
    assert set(made) <= TARGETS
    for line in commands(path):
        for word in re.findall(r"\S*/\S*", line.replace(".venv/bin/", "")):
            assert (ROOT / word).exists(), line


def test_together_they_do_what_a_release_needs() -> None:
    made = {line for path in WORKFLOWS for line in commands(path)}
    wanted = ("test", "test-minimum", "test-newest", "coverage", "docs", "package")
    assert {f"make {name}" for name in wanted} <= made


def test_they_run_on_every_python_that_is_named() -> None:
    named = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == named
