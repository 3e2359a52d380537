"""The sentences about how the results compare with the paper and the theory."""

from __future__ import annotations

from report.sample import CLASSES, cell, classification, efficiency, row
from symgnn.report import differences, mixed_up, summary
from symgnn.report._verdict_marks import agrees


def test_summary_counts_cells() -> None:
    # fixed: 2 + 3 of AGN (one violated), 3 of SDGN, 1 of GN, 1 of CGN that the paper has not
    assert summary(classification()) == (
        "12 of 15 cells that the paper has agree with it; 10 are fixed by theory, 1 of them "
        "not met. 5 of the 20 cells are new."
    )


def test_summary_when_all_is_well() -> None:
    results = classification()
    one = cell(1.0, paper=1.0, verdict="exact")
    results["rows"] = [row("AGN", "mean", "identity", one, one, one, one)]
    assert summary(results) == (
        "All 4 cells that the paper has agree with it; 4 are fixed by theory, all met exactly."
    )


def test_summary_counts_kinds() -> None:
    results = classification()
    one = cell(1.0, paper=1.0, verdict="exact")
    off, near = (cell(0.3, paper=0.5, verdict=word) for word in ("differs", "within"))
    cells = [{**one, "kind": "fixed"}, *({**each, "kind": "open"} for each in (off, near, near))]
    results["rows"] = [row("AGN", "mean", "identity", *cells)]
    assert summary(results) == (
        "3 of 4 cells that the paper has agree with it (all 1 that theory fixes, 2 of 3 others); 1 "
        "are fixed by theory, all met exactly."
    )


def test_summary_without_the_paper() -> None:
    assert summary(efficiency()) == "No cell has a number of the paper beside it."


def test_cell_fixed_by_theory_is_compared_by_its_numbers() -> None:
    assert agrees(cell(0.2, paper=0.25, verdict="exact"))
    assert agrees(cell(0.2, paper=0.26, verdict="exact")) is False
    assert agrees({**cell(0.2, paper=0.26, verdict="exact"), "error": 0.021})
    assert agrees(cell(0.2, verdict="exact")) is None


def test_differences_in_words() -> None:
    assert differences(classification()) == [
        "AGN, sum, neighbour-sum; rotated, reflected and dilated: 0.87±0.01, although theory fixes "
        "this cell (the paper has 1.00).",
        "GN, mean; rotated, reflected and dilated: 0.31±0.03 here, 0.75±0.05 in the paper, lower "
        "here by 0.44.",
        "GN, mean; non-orthogonal, μ = 3: 0.31±0.03 here, 0.75±0.05 in the paper, lower here by "
        "0.44.",
    ]


def test_exact_cell_away_from_the_paper_is_listed() -> None:
    results = classification()
    results["rows"] = results["rows"][2:3]
    results["rows"][0]["cells"]["train"] = cell(0.2, paper=0.5, verdict="exact")
    (sentence,) = differences(results)
    assert sentence.endswith("lower here by 0.30; theory fixes this cell, and ours meets it.")


def test_mixed_up_classes() -> None:
    results = classification()
    assert mixed_up(results) == ["SDGN, mean, identity: all 5 classes"]
    matrix = results["rows"][0]["confusion"]["train"]
    for i, j in ((0, 2), (3, 4)):
        matrix[i][i], matrix[i][j] = 0.4, 0.6
    assert mixed_up(results)[0] == (
        f"AGN, mean, identity: {CLASSES[0]} and {CLASSES[2]}; {CLASSES[3]} and {CLASSES[4]}"
    )


def test_mixed_up_needs_confusion_matrices() -> None:
    results = classification()
    for entry in results["rows"]:
        del entry["confusion"]
    assert mixed_up(results) == []
