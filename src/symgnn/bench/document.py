"""Puts recorded results into the documentation: `python -m symgnn.bench.document RESULTS PAGE`.

Whatever stands on the page between `<!-- bench NAME -->` and `<!-- end -->` is replaced by the
table and the pictures of the suite NAME, from `RESULTS/NAME.json`; the pictures are drawn into
`pictures/` beside the page.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from symgnn.bench import suite_named
from symgnn.bench.claims import summary
from symgnn.bench.suite import recorded
from symgnn.bench.table import markdown_table
from symgnn.report.page import Picture, pictures_by
from symgnn.store import write_whole

_PLACE = re.compile(r"(<!-- bench (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def written(page: str, results: Mapping[str, Any], pictures: Sequence[Picture]) -> str:
    """The page with the suites of results.json put in; those without results say so."""
    found = {suite["name"]: suite for suite in results["suites"]}

    def section(match: re.Match[str]) -> str:
        before, name, after = match.groups()
        suite_named(name)  # a wrong name is an error
        text = _section(found[name], pictures) if name in found else "Not measured yet."
        return f"{before}\n{text}\n\n{after}"

    return _PLACE.sub(section, page)


def _section(suite: Mapping[str, Any], pictures: Sequence[Picture]) -> str:
    name, made = suite["name"], suite["environment"]
    links = [
        f"![{picture.heading}](pictures/speed-{picture.name}.png)"
        for picture in pictures
        if picture.name in (name, f"{name}-curve")
    ]
    how = f"Measured with {suite['threads']} threads, torch {made['torch']}, {made['platform']}."
    notes = [f"Not measured: {note}." for note in suite["notes"]]
    text = f"{summary(suite['claims'])} {suite['finding']} {how}"
    return "\n\n".join([text, *notes, *links, markdown_table(suite)])


def main(arguments: Sequence[str]) -> int:
    """Rewrite the page; give the exit code."""
    if len(arguments) != 2:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    results, page = recorded(Path(arguments[0])), Path(arguments[1])
    pictures = pictures_by("symgnn.bench.figures", results) or []
    for picture in pictures:
        write_whole(page.parent / "pictures" / f"speed-{picture.name}.png", picture.png)
    write_whole(page, written(page.read_text(), results, pictures).encode("utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
