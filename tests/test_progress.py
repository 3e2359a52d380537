"""Progress in a log: a line each minute, and no bar."""

import pytest

from symgnn import progress


@pytest.fixture
def clock(monkeypatch):
    """Seconds that a test sets."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_line_each_minute_says_how_far_and_how_long(clock):
    lines = []
    shown = progress.ProgressLines("images", lines.append)
    for second in range(0, 1201, 10):
        clock[0] = float(second)
        shown(second, 1200)
    assert len(lines) == 19
    assert lines[0] == "images: 60 of 1,200, about 19 min left"
    assert lines[-1] == "images: 1,140 of 1,200, about 1 min left"


def test_work_that_continues_is_timed_from_where_it_began(clock):
    lines = []
    shown = progress.ProgressLines("tours", lines.append)
    shown(900, 1000)
    clock[0] = 120.0
    shown(950, 1000)
    clock[0] = 240.0
    shown(990, 1000)
    assert lines.pop() == "tours: 990 of 1,000, less than a minute left"
    assert lines == ["tours: 950 of 1,000, about 2 min left"]


def test_what_takes_less_than_a_minute_writes_nothing(clock, capsys):
    with progress.bar("short") as shown:
        clock[0] = 59.0
        shown(1, 2)
    assert capsys.readouterr().err == ""


def test_without_a_terminal_lines_go_to_stderr(clock, capsys):
    with progress.bar("long") as shown:
        shown(0, 4)
        clock[0] = 61.0
        shown(1, 4)
    captured = capsys.readouterr()
    assert captured.err == "long: 1 of 4, about 3 min left\n"
    assert captured.out == ""


def test_nothing_is_shown_where_it_is_not_wanted():
    with progress.bar("quiet", show=False) as shown:
        assert shown is None
