"""Derivatives by differences, with how far they can be trusted."""

from __future__ import annotations

from collections.abc import Callable

#: Steps, relative to the first one. Small ones suffer from rounding, large ones from curvature.
LADDER = (1.0, 3.0, 9.0, 27.0)
#: Two steps that agree up to this are good enough.
ENOUGH = 1e-6


def derivative(function: Callable[[float], float], step: float) -> tuple[float, float]:
    """The derivative at 0 and its uncertainty, by differences of fourth order.

    Steps of growing size are tried. The two neighbouring ones that agree best give the value, and
    their difference is the uncertainty: large where the function is rough, such as an energy that
    was computed in float32.

    Args:
        function: A function of one number.
        step: The smallest step.

    Returns:
        The derivative and its uncertainty.

    Example:
        >>> import math
        >>> value, uncertainty = derivative(math.sin, 1e-3)
        >>> abs(value - 1) < 1e-9
        True
    """
    best = (0.0, float("inf"))
    before: float | None = None
    for factor in LADDER:
        h = factor * step
        near, far = function(h) - function(-h), function(2 * h) - function(-2 * h)
        value = (8 * near - far) / (12 * h)
        if before is not None:
            apart = abs(value - before)
            if apart < best[1]:
                best = ((value + before) / 2, apart)
            if apart <= ENOUGH * max(abs(value), abs(before)):
                break
        before = value
    return best
