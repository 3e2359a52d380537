"""The page itself: its parts, and what happens when a slider moves. Dash makes it."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from symgnn.explorer._explorer_figures import lattice_figure, shape_figure
from symgnn.explorer._explorer_moves import MOVES, Move
from symgnn.explorer._explorer_networks import ROUNDING, Reaction
from symgnn.explorer._explorer_stage import Scene, Stage

ASSETS = Path(__file__).parent / "assets"
HOST = "127.0.0.1"
WORDS = {
    "kept": "stays, as it must",
    "same here": "stays here; need not",
    "changes": "changes",
    "not known": "symmetry not known",
    "broken": "changes, but must not",
}


def identifier(name: str) -> str:
    """The identifier of a slider."""
    return "move-" + name.replace(" ", "-")


def _dash() -> Any:
    try:
        import dash
    except ImportError:
        raise ValueError('explore: needs Dash; pip install "symgnn[explore]"') from None
    return dash


def make_app(stage: Stage | None = None) -> Any:
    """Create the page as a Dash application; all its scripts and styles are local.

    Args:
        stage: The shapes and networks; those of the package if not given.

    Returns:
        A `dash.Dash`; :func:`serve` starts it, and `app.server` is its WSGI application.

    Example:
        >>> make_app().title
        'symgnn explorer'
    """
    dash = _dash()
    stage = stage or Stage()
    app = dash.Dash(
        "symgnn.explorer",
        title="symgnn explorer",
        update_title=None,
        assets_folder=str(ASSETS),
        serve_locally=True,
    )
    app.layout = _layout(dash, stage)
    _connect(dash, app, stage)
    return app


def _layout(dash: Any, stage: Stage) -> Any:
    html, dcc = dash.html, dash.dcc
    first = "cube" if stage.own is None else stage.own[0]
    still = {"displayModeBar": False, "responsive": True}
    return html.Main(
        [
            html.Header(
                [
                    html.H1("Move a shape, and see which networks notice"),
                    html.P(
                        "Every network has random parameters, unless it is yours. Green: theory "
                        "says that the output stays, and it does. Orange: it may change. "
                        "With + map, layers move the coordinates (neighbour-sum)."
                    ),
                ]
            ),
            html.Section(
                [
                    html.Label("shape", htmlFor="shape"),
                    dcc.Dropdown(stage.shapes, first, id="shape", clearable=False),
                    html.Button("back to the start", id="reset", n_clicks=0),
                    *(_slider(dash, one) for one in MOVES.values()),
                ],
                className="sliders",
            ),
            html.Section(
                [
                    dcc.Graph(id="drawing", config=still, style={"height": "440px"}),
                    html.Label("view from", htmlFor="view"),
                    dcc.Slider(*(-180, 180, 5), value=0, id="view", marks=None, updatemode="drag"),
                    html.Div(id="explanation", className="explanation"),
                ],
                className="picture",
            ),
            html.Section(
                [html.H2("What each network's output does"), html.Div(id="reactions")],
                className="networks",
            ),
            html.Section(
                [
                    html.H2("The lattice of their symmetries"),
                    dcc.Graph(id="lattice", config=still, style={"height": "600px"}),
                ],
                className="lattice-part",
            ),
        ]
    )


def _slider(dash: Any, one: Move) -> Any:
    name = identifier(one.name)
    slider = dash.dcc.Slider(
        *(one.low, one.high, one.step), value=0, id=name, marks=None, updatemode="drag"
    )
    return dash.html.Div(
        [
            dash.html.Div([dash.html.Span(one.name), dash.html.Small(id=f"{name}-note")]),
            slider,
        ],
        className="move",
        id=f"{name}-row",
    )


def _connect(dash: Any, app: Any, stage: Stage) -> None:
    names = [identifier(name) for name in MOVES]
    output, given = dash.Output, dash.Input

    @app.callback(
        *(output(name, "value") for name in names),
        *(output(name, "disabled") for name in names),
        *(output(f"{name}-row", "title") for name in names),
        given("shape", "value"),
        given("reset", "n_clicks"),
    )
    def start(shape: str, _: int) -> list[Any]:
        return starting(stage, shape)

    @app.callback(
        output("drawing", "figure"),
        output("reactions", "children"),
        output("lattice", "figure"),
        output("explanation", "children"),
        *(output(f"{name}-note", "children") for name in names),
        given("shape", "value"),
        given("view", "value"),
        *(given(name, "value") for name in names),
    )
    def follow(shape: str, view: float, *values: float) -> list[Any]:
        return following(stage, dash.html, shape, view, values)


def starting(stage: Stage, shape: str) -> list[Any]:
    """Sliders at 0; those that the shape does not have are off, and say why."""
    missing = stage.missing(shape)
    return [
        *(0 for _ in MOVES),
        *(missing[name] is not None for name in MOVES),
        *(missing[name] or "" for name in MOVES),
    ]


def following(
    stage: Stage, html: Any, shape: str, view: float, values: Sequence[float]
) -> list[Any]:
    """Everything that is shown for the values of the sliders."""
    missing = stage.missing(shape)
    chosen = {
        name: float(value or 0)
        for name, value in zip(MOVES, values, strict=True)
        if missing[name] is None
    }
    scene = stage.scene(shape, chosen)
    networks = stage.networks(shape)
    return [
        shape_figure(scene, float(view or 0)),
        html.Ol([_row(html, one) for one in scene.reactions]),
        lattice_figure(networks, scene.reactions),
        explanation(html, scene),
        *(_note(name, missing[name], chosen.get(name, 0.0)) for name in MOVES),
    ]


def _note(name: str, reason: str | None, value: float) -> str:
    if reason is not None:
        return "not of this shape"
    if value == 0:
        return ""
    unit = "°" if MOVES[name].high == 180 else ""
    return f"{value:g}{unit}"


def share(change: float) -> float:
    """The length of the bar of a change, from 0 (rounding) to 1 (as large as the output)."""
    if change <= ROUNDING:
        return 0.0
    return min(max(1 - math.log10(max(change, ROUNDING)) / math.log10(ROUNDING), 0.02), 1.0)


def _row(html: Any, one: Reaction) -> Any:
    size = "0" if one.change == 0 else f"{one.change:.1e}"
    style = {"width": f"{100 * share(one.change):.1f}%"}
    return html.Li(
        [
            html.Span(one.name, className="name"),
            html.Span(html.Span(style=style), className="bar"),
            html.Span(f"{size} · {WORDS[one.verdict]}", className="words"),
        ],
        className=one.verdict.replace(" ", "-"),
        **{"data-network": one.name, "data-change": repr(one.change)},
    )


def explanation(html: Any, scene: Scene) -> Any:
    """A description of the move, and of the values that it changed most."""
    if not scene.moved.kinds:
        return html.P("Drag a slider.")
    kinds = ", ".join(scene.moved.kinds)
    return [
        html.P(["The move: ", html.Strong(kinds), ". What changed most:"]),
        html.Ul([html.Li(str(one)) for one in scene.changes]),
    ]


def serve(
    app: Any, port: int = 8050, ready: Callable[[str], None] | None = None
) -> None:  # pragma: no cover - runs until it is stopped
    """Serve the page on 127.0.0.1 until it is interrupted.

    Args:
        app: The application from :func:`make_app`.
        port: The port; 0 for any free one.
        ready: Called with the address once the page responds.

    Returns:
        None, when it is interrupted.

    Example:
        >>> serve  # doctest: +ELLIPSIS
        <function serve at ...>
    """
    from werkzeug.serving import make_server

    if not 0 <= port <= 65535:
        raise ValueError(f"--port: is {port}; give a number from 0 to 65535")
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port))
        except OSError:
            raise ValueError(
                f"--port: {port} is in use; give another, such as {port + 1}"
            ) from None
    torch.set_num_threads(1)  # graphs are small: more threads wait for each other
    server = make_server(HOST, port, app.server, threaded=True)
    if ready is not None:
        ready(f"http://{HOST}:{server.port}/")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.shutdown()
