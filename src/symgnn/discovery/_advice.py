"""The advice, in one paragraph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symgnn.discovery._deciding import LEVEL
from symgnn.discovery._kind_verdicts import NOTHING_ADDED, RESIDUALS, UNSEEN
from symgnn.discovery._ladder import AGAIN, AND, ORDER
from symgnn.geometry.symmetry import plural

if TYPE_CHECKING:
    from symgnn.discovery._discovery_report import DiscoveryReport

#: A classifier that tells more than this share of graphs from transformed ones is worth a word.
TOLD = 0.6
#: A pose that explains more than this share of the targets is worth a word.
EXPLAINED = 0.1


def advice(report: DiscoveryReport) -> str:
    """What a scientist would say."""
    sentences = [_targets(report), _inputs(report), _pose(report), _network(report)]
    return " ".join(sentence for sentence in sentences if sentence)


def _listed(names: list[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _targets(report: DiscoveryReport) -> str:
    explained, p_value = report.signal
    if report.missed and not report.kept and not report.broken:
        return "The time was over before anything could be decided: give more minutes, or resume."
    if not report.kept and not report.broken:
        if any(found.decided_by == NOTHING_ADDED for found in report.verdicts.values()):
            return (
                f"The best predictor explains {100 * explained:.0f} % of the variance of the "
                "targets, and no predictor gains by reading coordinates. The rest may be noise, or "
                "depend on coordinates in a way that needs more graphs: undecided."
            )
        return (
            f"The targets cannot be predicted from these graphs (held-out R² {explained:.2f}, "
            f"p = {p_value:.2g}), so nothing can be said: undecided."
        )
    parts = []
    if report.kept:
        most = max(report.verdicts[kind].interval[1] for kind in report.kept)
        loss = f"without them the error is at most {100 * (most - 1):.1f} % larger"
        if most < 1.0005:
            loss = "no predictor that sees them is better"
        parts.append(f"The targets keep {_listed([plural(k) for k in report.kept])} ({loss})")
    if report.broken:
        told = [
            f"{plural(kind)} (error × {report.verdicts[kind].effect:.1f})"
            for kind in sorted(report.broken, key=lambda k: -report.verdicts[k].effect)
        ]
        parts.append(f"these matter: {_listed(told)}")
    text = "; ".join(parts)
    text = text[0].upper() + text[1:] + "."
    if report.undecided:
        text += f" Undecided: {_listed([plural(k) for k in report.undecided])}."
    small = [plural(k) for k in report.undecided if report.verdicts[k].decided_by == RESIDUALS]
    if small:
        text += (
            f" No predictor gains by seeing {_listed(small)}, yet what all leave unexplained "
            "depends on them: a small effect, which more graphs would decide."
        )
    hidden = [plural(k) for k in report.undecided if report.verdicts[k].decided_by == UNSEEN]
    if hidden:
        text += (
            f" No predictor gains by seeing {_listed(hidden)}, but these data are too few to show "
            "an effect of a fifth of what coordinates add."
        )
    return (
        f"{text} The best predictor, which reads {read_by(report.best)}, explains "
        f"{100 * explained:.0f} % of the variance of the targets."
    )


def read_by(rung: str) -> str:
    """What a rung reads, in words: 'lengths + lengths again and order' is 'lengths and order'."""
    ordered = rung.endswith(ORDER)
    parts = dict.fromkeys(part.removesuffix(AGAIN) for part in rung.removesuffix(ORDER).split(AND))
    names = [{"graph alone": "the graph alone", "no vector": "nothing"}.get(p, p) for p in parts]
    return _listed([*names, "the order of the nodes"] if ordered else names)


def _inputs(report: DiscoveryReport) -> str:
    """Whether the inputs are aligned."""
    verdict = report.verdicts.get("rotation")
    spread = None if verdict is None else verdict.spread
    if spread is None or spread.accuracy <= TOLD:
        return ""
    if spread.p_value is not None and spread.p_value > LEVEL:
        return ""
    return (
        "The inputs are not spread evenly over rotations (a classifier tells graphs from rotated "
        f"ones with an accuracy of {100 * spread.accuracy:.0f} %): a network that reads "
        "coordinates looks better here than on rotated data."
    )


def _pose(report: DiscoveryReport) -> str:
    whole = report.pose.get("all")
    if whole is None or whole.interval[0] < EXPLAINED:
        return ""
    parts = {name: found for name, found in report.pose.items() if name != "all"}
    most = max(parts, key=lambda name: parts[name].explained)
    return (
        f"The pose alone (place, direction, size) explains {100 * whole.explained:.0f} % of the "
        f"targets, mostly the {most}."
    )


def _network(report: DiscoveryReport) -> str:
    if report.network is None:
        return "No network of the library sees all that matters here."
    options = {key: value for key, value in report.model.items() if key != "block"}
    said = f"`{report.model['block']}`"
    if options:
        said += f" with {', '.join(f'{key}={value}' for key, value in options.items())}"
    if not report.kept and not report.broken:
        return f"Until then {said}, which sees everything, is safe."
    order = report.verdicts.get("permutation")
    hint = ""
    if order is not None and order.verdict == "broken":
        hint = " It keeps permutations: give nodes their place in the order as a feature."
    return f"Use {said}, which keeps {report.network}.{_expected(report)}{hint}"


def _expected(report: DiscoveryReport) -> str:
    """The error to expect, as the rungs had it."""
    if report.expected is None:
        return ""
    share, value = report.expected
    seen = f"with {report.graphs:,} graphs, as the predictors of this symmetry had it"
    if report.task.kind == "classification":
        return f" Expect {100 * max(1 - share**2, 0):.0f} % of the classes explained {seen}."
    of = f"{share:.2g} of the deviation of the targets"
    error = of if value is None else f"{value:.2g} ({of})"
    return f" Expect a root mean square error of about {error} {seen}."
