# ruff: noqa: T201, E501
"""Audit the whole zoo and write the table of the docs: `python tests/audit/record_zoo.py`.

Exhibits whose package is not installed keep what was recorded of them before, so that packages that
exclude each other can be recorded one environment after the other. With names, only exhibits with
one of them in their package or name are audited; with `--page`, only the page is written again.
"""

from __future__ import annotations

import json
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

DOCS = Path(__file__).parents[2] / "docs"
RECORD, PAGE = DOCS / "audit-zoo.json", DOCS / "audit-zoo.md"

HEAD = """# The zoo: public models under the audit

Each model or calculator below was written by somebody else. It was built by its own package, with the weights that
come with it or else small and with random parameters, and audited for the groups that its authors claim and for some
that it cannot have. An error is the largest over all transformations tried, relative to how much the output varies
when the structure is deformed a little; an absolute error is in the units of the output.

"holds in float32" means: to the rounding of float32, in which the model computes or keeps constants.

`python tests/audit/record_zoo.py` measures again and writes this page and `audit-zoo.json`; [how to install the
models](#to-repeat-it) is at the end.

"""

TAIL = """
## To repeat it

```
pip install "symgnn[zoo]"
pip install --no-deps schnetpack==2.1.1      # asks for a sympy that torch 2.13 excludes
pytest tests/audit/test_zoo.py -m "slow or not slow"
python tests/audit/record_zoo.py
```

mace-torch asks for e3nn 0.4.4, which others exclude: install `symgnn[test]` and `mace-torch` in an environment of their
own, set `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1` (e3nn 0.4.4 loads its constants in the old way) and run
`python tests/audit/record_zoo.py mace`. What is not installed keeps its row.
"""


def record(names: list[str], known: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Audit every exhibit whose package is there; else keep the row that is known."""
    from audit.zoo import ZOO

    before = {(row["package"], row["name"]): row for row in known}
    rows = []
    for exhibit in ZOO:
        label = f"{exhibit.package}: {exhibit.name}"
        old = before.get((exhibit.package, exhibit.name))
        wanted = not names or any(name.lower() in label.lower() for name in names)
        row = _measured(exhibit, label) if wanted else None
        row = old if row is None else row
        if row is not None:
            rows.append(row)
    return rows


def _measured(exhibit: Any, label: str) -> dict[str, Any] | None:
    from audit.test_zoo import audited

    if exhibit.missing:
        print(f"- {label}: {exhibit.missing} is not installed", flush=True)
        return None
    start = time.monotonic()
    try:
        report = audited(exhibit)
    except Exception as error:  # what does not install does not stop the rest
        line = f"{type(error).__name__}: {error}".partition("\n")[0]
        print(f"- {label}: {line}", flush=True)
        return None
    found = {}
    for group in dict.fromkeys([*exhibit.claimed, *exhibit.breaks]):
        answer = report.holds(group)
        found[group] = {
            "claimed": group in exhibit.claimed,
            "holds": bool(answer) if answer.known else None,
            "text": repr(answer),
        }
    measured = [f for f in report.findings.values() if f.measured]
    kept = [f for f in measured if f.holds]
    checks = {k: c.verdict for k, c in report.checks.items() if c.verdict != "unmeasured"}
    good = all(g["claimed"] == g["holds"] for g in found.values())
    print(f"{'✓' if good else '✗'} {label} {time.monotonic() - start:.0f} s", flush=True)
    return {
        "name": exhibit.name,
        "package": exhibit.package,
        "version": metadata.version(exhibit.package),
        "outputs": {o.name: str(o) for o in report.outputs},
        "groups": found,
        "verdict": "float32" if any(f.verdict == "single" for f in kept) else "rounding",
        "error": max((f.error for f in kept), default=0.0),
        "breaks": {f.kind: str(f.counterexample) for f in measured if f.counterexample},
        "checks": checks,
        "failed": [str(c) for c in report.checks.values() if c.verdict == "broken" and c.required],
        "warnings": report.warnings,
        "note": exhibit.note,
        "calls": report.calls,
    }


def page(rows: list[dict[str, Any]]) -> str:
    """The page's text."""
    good = [all(g["claimed"] == g["holds"] for g in row["groups"].values()) for row in rows]
    packages = {row["package"] for row in rows}
    lines = [
        f"{HEAD}{len(rows)} models and calculators of {len(packages)} packages; {sum(good)} are as "
        "their authors claim.\n",
        "| model | package | outputs | has | has not | largest error of what it has |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        has = [name for name, g in row["groups"].items() if g["holds"]]
        lacks = [
            f"**{name}**" if g["claimed"] else name
            for name, g in row["groups"].items()
            if not g["holds"]
        ]
        types = ", ".join(f"{name}: {type_}" for name, type_ in row["outputs"].items())
        error = (f"{row['error']:.0e}" if row["error"] else "0") + (
            " (float32)" if row["verdict"] == "float32" else ""
        )
        lines.append(
            f"| {row['name']} | {row['package']} {row['version']} | {types} | {', '.join(has)} | "
            f"{', '.join(lacks)} | {error} |"
        )
    lines += ["", "A group in bold is claimed and does not hold.", "", "## What was found", ""]
    for row in rows:
        said = [row["note"]] if row["note"] else []
        said += [g["text"] for g in row["groups"].values() if g["claimed"] and not g["holds"]]
        said += row["failed"]
        if any("hold constants in float32?" in warning for warning in row["warnings"]):
            said.append(f"constants in float32 leave an error of {row['error']:.0e} in float64")
        if said:
            lines.append(f"- **{row['name']}** ({row['package']}): {'; '.join(said)}.")
    return "\n".join(lines) + "\n" + TAIL


def main() -> None:
    """Record, unless only the page is wanted, and write."""
    names = [name for name in sys.argv[1:] if not name.startswith("-")]
    rows = json.loads(RECORD.read_text()) if RECORD.exists() else []
    if "--page" not in sys.argv:
        rows = record(names, rows)
        text = json.dumps(rows, indent=1, ensure_ascii=False)
        RECORD.write_text(text + "\n")
    PAGE.write_text(page(rows))


if __name__ == "__main__":
    main()
