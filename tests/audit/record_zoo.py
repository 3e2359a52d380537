# ruff: noqa: T201, E501
"""Audit the whole zoo and write the table of the docs: `python tests/audit/record_zoo.py`.

With `--page`, only write the page again, from what was recorded.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

DOCS = Path(__file__).parents[2] / "docs"
RECORD, PAGE = DOCS / "audit-zoo.json", DOCS / "audit-zoo.md"

HEAD = """# The zoo: public models under the audit

Each model or calculator below was written by somebody else. It was built by its own package, small and with random
parameters where it has none to load, and audited for the groups that its authors claim and some that it cannot have.
Errors are the largest of all transformations tried, relative to how much the output varies when the structure is
deformed a little; float64. `pip install symgnn[zoo]` and `pytest -m slow tests/audit/test_zoo.py` repeat it;
`python tests/audit/record_zoo.py` writes this page.

"""


def record() -> list[dict]:
    """Audit every exhibit whose package is there."""
    from audit.test_zoo import audited
    from audit.zoo import ZOO

    rows = []
    for exhibit in ZOO:
        start = time.monotonic()
        try:
            for module in exhibit.needs:
                importlib.import_module(module)
            report = audited(exhibit)
        except Exception as error:  # what does not install does not stop the rest
            line = f"{type(error).__name__}: {error}".partition("\n")[0]
            print(f"- {exhibit.package}: {exhibit.name}: {line}", flush=True)
            continue
        groups = list(dict.fromkeys([*exhibit.holds, *exhibit.breaks]))
        found = {}
        for group in groups:
            answer = report.holds(group)
            found[group] = {
                "claimed": group in exhibit.holds,
                "holds": bool(answer) if answer.known else None,
                "text": repr(answer),
            }
        errors = {k: f.error for k, f in report.findings.items() if f.measured}
        checks = {k: c.verdict for k, c in report.checks.items() if c.verdict != "unmeasured"}
        rows.append(
            {
                "name": exhibit.name,
                "package": exhibit.package,
                "version": metadata.version(exhibit.package),
                "outputs": {o.name: str(o) for o in report.outputs},
                "groups": found,
                "error": max((errors[k] for k in errors), default=0.0),
                "checks": checks,
                "failed": [str(c) for c in report.checks.values() if c.verdict == "broken"],
                "note": exhibit.note,
                "calls": report.calls,
            }
        )
        good = all(g["claimed"] == g["holds"] for g in found.values())
        seconds = time.monotonic() - start
        print(
            f"{'✓' if good else '✗'} {exhibit.package}: {exhibit.name} {seconds:.0f} s", flush=True
        )
        if not good:
            print(report, flush=True)
    return rows


def page(rows: list[dict]) -> str:
    """The page's text."""
    as_claimed = sum(all(g["claimed"] == g["holds"] for g in r["groups"].values()) for r in rows)
    lines = [HEAD, f"{len(rows)} models and calculators; {as_claimed} as their authors claim.\n"]
    lines += ["| model | package | outputs | has | has not | largest error of what it has |"]
    lines += ["|---|---|---|---|---|---|"]
    for row in rows:
        has = [name for name, g in row["groups"].items() if g["holds"]]
        lacks = [name for name, g in row["groups"].items() if g["holds"] is False]
        types = ", ".join(dict.fromkeys(row["outputs"].values()))
        error = "" if lacks else f"{row['error']:.0e}"
        lines.append(
            f"| {row['name']} | {row['package']} {row['version']} | {types} | {', '.join(has)} | "
            f"{', '.join(lacks)} | {error} |"
        )
    lines += ["", "## What was found", ""]
    for row in rows:
        said = [row["note"]] if row["note"] else []
        said += [g["text"] for g in row["groups"].values() if g["claimed"] and not g["holds"]]
        said += row["failed"]
        lines += [f"- **{row['name']}** ({row['package']}): {text}" for text in said]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Record, unless only the page is wanted, and write."""
    if "--page" not in sys.argv:
        RECORD.write_text(json.dumps(record(), indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(json.loads(RECORD.read_text())))


if __name__ == "__main__":
    main()
