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

from symgnn.bench import check_name
from symgnn.bench._bench_table import error_markdown, markdown_table
from symgnn.bench._speed_claims import summary
from symgnn.bench._suite import recorded
from symgnn.report._comparison import counted
from symgnn.report._page import Picture, pictures_by
from symgnn.store import write_whole

_PLACE = re.compile(r"(<!-- bench (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def written(page: str, results: Mapping[str, Any], pictures: Sequence[Picture]) -> str:
    """The page with the suites of results.json put in; those without results say so."""
    found = {suite["name"]: suite for suite in results["suites"]}

    def section(match: re.Match[str]) -> str:
        before, name, after = match.groups()
        check_name(name)
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
    threads = counted(suite["threads"], "thread")
    how = f"Measured with {threads}, torch {made['torch']}, {made['platform']}."
    notes = [f"Not measured: {note}." for note in suite["notes"]]
    text = f"{summary(suite['claims'])} {suite['finding']} {how}"
    errors = [error_markdown(suite)] if suite.get("runs") else []
    return "\n\n".join([text, *notes, *links, *errors, markdown_table(suite)])


def main(arguments: Sequence[str]) -> int:
    """Rewrite the page; give the exit code."""
    if len(arguments) != 2:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    try:
        rewrite(Path(arguments[0]), Path(arguments[1]))
    except (ValueError, OSError) as error:
        sys.stderr.write(f"symgnn.bench.document: {error}\n")
        return 2
    return 0


def rewrite(directory: Path, page: Path) -> None:
    """Put the results of a directory into a page, and their pictures beside it."""
    text = page.read_text()
    named = {match[2] for match in _PLACE.finditer(text)}
    results = {"suites": [each for each in recorded(directory)["suites"] if each["name"] in named]}
    for suite in results["suites"]:
        if suite["quick"]:
            raise ValueError(
                f"{suite['name']}: is from a run with --quick; run it again without --quick"
            )
    pictures = pictures_by("symgnn.bench._figures", results) or []
    text = written(text, results, pictures)
    for picture in pictures:
        write_whole(page.parent / "pictures" / f"speed-{picture.name}.png", picture.png)
    write_whole(page, text.encode("utf-8"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
