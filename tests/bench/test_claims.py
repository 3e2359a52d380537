"""Verdicts, and how they are said."""

import pytest
from rich.console import Console

from bench.samples import absent, bad, claim, good, results, suite
from symgnn.bench._bench_table import html_table, markdown_table, rich_table
from symgnn.bench._measure import Rounds
from symgnn.bench._speed_claims import missed, number, summary
from symgnn.bench.document import written


@pytest.mark.parametrize(
    ("ratio", "bound", "at", "reached"),
    [
        (1.2, 1.3, "most", True),
        (1.304, 1.3, "most", True),  # it is printed as 1.30
        (1.306, 1.3, "most", False),
        (4.1, 4.0, "least", True),
        (3.99, 4.0, "least", False),
        (0.0049, 0.001, "most", False),
        (5.0, None, "most", None),
    ],
)
def test_verdicts(ratio: float, bound: float | None, at: str, reached: bool | None) -> None:
    assert claim(ratio, bound, at).reached is reached
    assert claim(ratio, bound, at).to_dict()["reached"] is reached


def test_numbers_have_three_digits() -> None:
    values = (0.001234, 0.17, 1.3, 13.14, 131.4, 1314.2)
    assert [*map(number, values)] == ["0.00123", "0.170", "1.30", "13.1", "131", "1314"]


def test_every_miss_is_named() -> None:
    assert missed(results(good)) == []
    assert missed(results(good, bad, absent)) == [
        "angles, squares: this over that, 2.0 is 2.00; the bound is ≤ 1.3"
    ]


def test_a_missing_peer_is_a_note_and_the_rest_goes_on() -> None:
    found = suite(absent, good, absent).run(Rounds())
    assert found["notes"] == ["squares: its peer is not installed"]
    assert len(found["claims"]) == 3
    assert summary(found["claims"]) == "2 of 2 bounds reached."
    assert summary(suite(absent).run(Rounds())["claims"]) == "For information: there is no bound."


def test_progress_ends_at_its_total() -> None:
    seen: list[tuple[int, int]] = []
    rounds = Rounds(repeats=2, warm_up=0)

    def part(rounds: Rounds) -> list:
        rounds.alternate({"a": lambda: None})
        return []

    suite(part, part).run(rounds, on_progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_tables_say_all() -> None:
    (found,) = results(good, bad, absent)["suites"]
    text = _printed(rich_table(found))
    for words in ("squares", "4.20", "≥ 4", "missed", "reached", "2 of 3 bounds", "What limits it"):
        assert words in text
    assert "not measured: squares: its peer is not installed" in text
    assert "| squares | this over that, 2.0 | 2.00 | 1.80–2.20 | ≤ 1.3 | **missed** |" in (
        markdown_table(found)
    )
    assert "a note &lt;here&gt;" in html_table(found)


def _printed(table: object) -> str:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def test_a_page_gets_its_tables() -> None:
    page = (
        "# Title\n<!-- bench angles -->\nold\n<!-- end -->\n\n<!-- bench seeds -->\n<!-- end -->\n"
    )
    text = written(page, results(good), [])
    assert "old" not in text
    assert "| squares | this over that, 4.2 | 4.20 |" in text
    assert "Not measured yet." in text.partition("bench seeds")[2]
    assert written(text, results(good), []) == text  # again, it is the same
    with pytest.raises(ValueError, match="did you mean 'seeds'"):
        written("<!-- bench sedes -->\n<!-- end -->", results(good), [])
