"""Diagrams of what contains what: rows respect the order, and lines miss the boxes."""

from itertools import pairwise

import pytest

from symgnn.report._order_diagram import order_diagram

DIVISORS = {
    count: [k for k in range(1, count + 1) if count % k == 0] for count in (1, 12, 210, 360)
}
#: Half the width and height of a box that lines must miss, in columns and rows.
HALF = (0.5, 0.35)


def divides(a: int, b: int) -> bool:
    return a % b == 0


@pytest.mark.parametrize("count", DIVISORS)
def test_what_contains_is_above(count: int) -> None:
    places = order_diagram(DIVISORS[count], divides).places
    assert all(
        places[a][1] > places[b][1] for a in places for b in places if a != b and divides(a, b)
    )


@pytest.mark.parametrize("count", DIVISORS)
def test_lines_lead_to_the_next_ones_alone(count: int) -> None:
    """Of divisors: those whose ratio is prime."""
    diagram = order_diagram(DIVISORS[count], divides)
    name = {place: one for one, place in diagram.places.items()}
    found = set()
    for line in diagram.lines:
        ends = [name[point] for point in line if point in name]
        found.add((ends[0], ends[-1]))
    primes = {2, 3, 5, 7}
    wanted = {
        (a, b) for a in name.values() for b in name.values() if divides(b, a) and b // a in primes
    }
    assert found == wanted
    assert len(diagram.lines) == len(wanted)


@pytest.mark.parametrize("count", DIVISORS)
def test_no_line_passes_behind_a_box(count: int) -> None:
    diagram = order_diagram(DIVISORS[count], divides)
    for line in diagram.lines:
        ends = {point for point in line if point in diagram.places.values()}
        others = [place for place in diagram.places.values() if place not in ends]
        for (x0, y0), (x1, y1) in pairwise(line):
            for k in range(51):
                x, y = x0 + (x1 - x0) * k / 50, y0 + (y1 - y0) * k / 50
                assert not [
                    box for box in others if abs(x - box[0]) < HALF[0] and abs(y - box[1]) < HALF[1]
                ]


def test_no_lines_cross_where_none_need_to() -> None:
    """A tree whose leaves are given in an order that crosses."""
    order = {"root": "", "a": "root", "b": "root", "b1": "b", "a1": "a", "b2": "b", "a2": "a"}

    def contains(a: str, b: str) -> bool:
        while a:
            if a == b:
                return True
            a = order[a]
        return False

    places = order_diagram(list(order), contains).places
    row = sorted(("a1", "a2", "b1", "b2"), key=lambda one: places[one][0])
    assert {row[0][0], row[1][0]} in ({"a"}, {"b"})
    assert places["a"][0] < places["b"][0] if row[0][0] == "a" else places["a"][0] > places["b"][0]
