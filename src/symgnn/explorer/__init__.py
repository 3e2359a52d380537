"""A local page that transforms a shape and shows which networks change: `symgnn explore`.

`measure` is the computation behind the page and has no further dependencies; `make_app` creates
the page and needs Dash: `pip install "symgnn[explore]"`.
"""

from symgnn.explorer._explorer_moves import MOVES, Move, Moved, move, moves_of
from symgnn.explorer._explorer_networks import NETWORKS, Reaction, Watched, measure, networks_for
from symgnn.explorer._explorer_page import make_app, serve
from symgnn.explorer._explorer_shapes import SHAPES, shape_named
from symgnn.explorer._largest_changes import Change, largest_changes

__all__ = [
    "MOVES",
    "NETWORKS",
    "SHAPES",
    "Change",
    "Move",
    "Moved",
    "Reaction",
    "Watched",
    "largest_changes",
    "make_app",
    "measure",
    "move",
    "moves_of",
    "networks_for",
    "serve",
    "shape_named",
]
