"""A config: one YAML file in three sections, changed by key=value, checked before a run.

The sections `data` and `model` are handed on as they are, to :mod:`symgnn.train._run_data` and to
:func:`symgnn.nn.build`, which know their keys; `train` is :class:`Training`.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import yaml

from symgnn._argument_checks import check_count, suggestion
from symgnn.nn.build import BUILD_OPTIONS, DEEP, build
from symgnn.nn.named_networks import network_named
from symgnn.nn.peers import PEERS
from symgnn.nn.spec import Network
from symgnn.nn.variants import variant_options
from symgnn.train._config_errors import in_section
from symgnn.train._potential_config import for_potential, training_of_potential
from symgnn.train._run_data import known_keys
from symgnn.train._settings import Training

#: The options of `build` that follow from the data.
INFERRED = (
    "task",
    "outputs",
    "node_features",
    "edge_features",
    "angle_features",
    "graph_features",
    "dimension",
)
#: Words for `model.averages`: which averages of the training graphs the network takes. All; those
#: that sums are divided by; those that measures and features are standardised by; none.
AVERAGES = {
    "training": ("terms", "measures", "features"),
    "terms": ("terms",),
    "measures": ("measures", "features"),
    "none": (),
}
SECTIONS = ("data", "model", "train")
#: The section `data` of a run on graphs that are in memory only.
IN_MEMORY = {"in_memory": True}
#: `model.block` of a run with a model that was given to `fit`, not made from a config.
OWN_MODEL = "given model"


@dataclass(frozen=True)
class Config:
    """The checked configuration of a run: the sections `data`, `model` and `train`.

    Example:
        >>> from symgnn.train import Config, Training
        >>> config = Config({"name": "qm9"}, {"block": "dgn"}, Training())
        >>> config.is_cross_validation
        False
    """

    data: dict[str, Any]
    model: dict[str, Any]
    train: Training = field(default_factory=Training)

    def as_dict(self) -> dict[str, Any]:
        """The sections, including all defaults of `model` and `train`."""
        found = dataclasses.asdict(self)
        if self.train.targets is not None:
            found["train"]["targets"] = list(self.train.targets)
        else:  # what is for potentials alone
            for name in ("targets", "target_weights", "references"):
                del found["train"][name]
        return found

    @property
    def is_cross_validation(self) -> bool:
        """Whether every fold is trained: `data.folds` is given, and no single `data.fold`."""
        return self.data.get("folds") is not None and self.data.get("fold") is None

    def to_yaml(self) -> str:
        """The text of a YAML file, for :func:`read_config`."""
        return yaml.safe_dump(self.as_dict(), sort_keys=False)


def read_config(path: Path, overrides: Sequence[str] = ()) -> Config:
    r"""Read the config of a run from a YAML file, and check it.

    Args:
        path: The file.
        overrides: Values that replace those of the file, such as `["train.epochs=3"]`.

    Returns:
        The config.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "run.yaml")
        ...     _ = path.write_text("data: {name: polytopes-3d}\nmodel: {block: agn}\n")
        ...     symgnn.train.read_config(path, ["train.epochs=3"]).train.epochs
        3
    """
    if path.is_dir():
        path = path / "config.yaml"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text file"
        raise ValueError(f"config: cannot read {path} ({reason}); give a YAML file") from None
    try:
        given = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        line = f", line {place.line + 1}" if place else ""
        problem = getattr(error, "problem", None) or "cannot be read"
        raise ValueError(f"config: {path}{line}: is not YAML ({problem})") from None
    return resolve(given or {}, overrides)


def resolve(given: Any, overrides: Sequence[str] = ()) -> Config:
    """A run from sections of keys and values, checked."""
    if not isinstance(given, dict):
        raise ValueError(f"config: is {given!r}; give the sections {', '.join(SECTIONS)}")
    sections = {name: _section(name, part) for name, part in given.items()}
    for override in overrides:
        _override(sections, override)
    check_keys("", sections, SECTIONS)
    for name in ("data", "model"):
        if not sections.get(name):
            raise ValueError(f"{name}: is missing; give this section")
    train = training(training_of_potential(sections.get("train", {})))
    data, model = for_potential(
        sections["data"], sections["model"], train.targets, reads="path" in sections["data"]
    )
    return Config(check_data(data), check_model(model), train)


def check_keys(section: str, given: Iterable[Any], known: Sequence[str]) -> None:
    """Refuse a key that is not known, with the nearest one that is."""
    for key in given:
        if key not in known:
            name = f"{section}.{key}" if section else key
            raise ValueError(f"{name}: is not known; {suggestion(key, known)}")


def check_data(given: Mapping[str, Any]) -> dict[str, Any]:
    """The section `data`, as far as it can be checked before any data are there."""
    if dict(given) == IN_MEMORY:
        return dict(IN_MEMORY)
    if ("name" in given) == ("path" in given):
        raise ValueError("data: give either name (of a dataset) or path (of your own files)")
    for key in ("split", "folds", "fold", "missing"):
        if key in given and "name" in given:
            raise ValueError(
                f"data.{key}: the dataset {given['name']} comes in splits of its own, without "
                "missing labels; this is for your own files, with data.path"
            )
    check_keys("data", given, known_keys(given))
    if given.get("folds") is not None:
        check_count("data.folds", given["folds"], 2)
    return dict(given)


def check_model(given: Mapping[str, Any]) -> dict[str, Any]:
    """The section `model`, if some model can be built of it."""
    model = dict(given)
    if model == {"block": OWN_MODEL}:
        return model
    block = model.pop("block", None)
    if not isinstance(block, str):
        raise ValueError(f"model.block: is {block!r}; give a name, such as 'dgn' or 'agn'")
    for key in INFERRED:
        if key in model:
            raise ValueError(f"model.{key}: is inferred from the data; remove it")
    peer = PEERS.get(block.lower())
    own = list(inspect.signature(peer).parameters) if peer else variant_options()
    known = [name for name in (*BUILD_OPTIONS, *own) if name not in INFERRED]
    check_keys("model", model, [*known, "block"])
    with in_section("model", [*known, "block"], architecture="block"):
        options = {key: model[key] for key in own if key in model}
        network = network_named(block, options, dimension=3, others=BUILD_OPTIONS)
        # a task that needs nothing of the data, where the network has one
        task = next((t for t in ("graph", "node", "edge") if t in network.readout), "coordinates")
        task = "node-vectors" if "rays" in model else task
        build(block, task=task, dimension=3, **_without_word(model))
    defaults = _defaults(network, peer, model)
    if network.init == "variance":
        layers = {**defaults, **model}["layers"]
        start = "variance" if model.get("averages", "training") not in (None, "none") else "torch"
        defaults |= {"averages": "training", "residual": layers > DEEP, "init": start}
    return {"block": block, **defaults, **model}


def _without_word(model: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `build`: `averages` may be a word for what only the data tell."""
    given = model.get("averages")
    if given is None or isinstance(given, Mapping):
        return dict(model)
    if not isinstance(given, str) or given not in AVERAGES:
        raise ValueError(
            f"averages: is {given!r}; choose from {', '.join(AVERAGES)}, or give them as "
            "symgnn.nn.averages(graphs).as_dict() has them"
        )
    return {name: value for name, value in model.items() if name != "averages"}


def _defaults(network: Network, peer: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of the model, which a run records so that later defaults do not change it."""
    found = {}
    for name, option in [
        *inspect.signature(build).parameters.items(),
        *(inspect.signature(peer).parameters.items() if peer else ()),
    ]:
        value = option.default
        if value is None:  # as the network has it
            value = getattr(network, name, None)
        if name not in INFERRED and isinstance(value, int | float | str | Mapping):
            found[name] = value
    merged = {**found, **given}
    if "mlp_hidden" not in merged and isinstance(merged["hidden"], int):
        found["mlp_hidden"] = 2 * merged["hidden"]
    return {name: value for name, value in found.items() if name not in given}


class _Loader(yaml.SafeLoader):
    """YAML in which `5e-4` is a number, and a key may be given once only."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = [self.construct_object(key) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key!r} is given twice", node.start_mark
                )
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def _section(name: str, given: Any) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ValueError(f"{name}: is {given!r}; give keys and values")
    return dict(given)


def _override(sections: dict[str, Any], override: str) -> None:
    """Set one `section.key=value`; the value is read as YAML."""
    name, equals, text = override.partition("=")
    first, *path = name.split(".")
    if not equals or not path:
        raise ValueError(f"{override}: give changes as section.key=value, such as model.hidden=64")
    check_keys("", [first], SECTIONS)
    place = sections.setdefault(first, {})
    for part in path[:-1]:
        inside = place.get(part)
        place[part] = dict(inside) if isinstance(inside, dict) else {}
        place = place[part]
    try:
        place[path[-1]] = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError:
        raise ValueError(f"{name}: is {text!r}, which is not YAML; put it in quotes") from None


def training(given: Mapping[str, Any]) -> Training:
    """The section `train`, checked."""
    kinds = get_type_hints(Training)
    check_keys("train", given, list(kinds))
    return Training(**{key: _typed(f"train.{key}", v, kinds[key]) for key, v in given.items()})


def _typed(name: str, value: Any, kind: Any) -> Any:
    """The value, if it is of the type that the field has."""
    choices = get_args(kind)
    if get_origin(kind) is Literal:
        text = "none" if value is None else str(value)
        if text not in choices:
            raise ValueError(f"{name}: is {value!r}; {suggestion(value, choices, listed=True)}")
        return text
    if get_origin(kind) in (Union, types.UnionType):
        if value is None or value == "none":
            return None
        return _typed(name, value, choices[0])
    if get_origin(kind) is tuple:
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise ValueError(f"{name}: is {value!r}; give a list, such as [energy, forces]")
        return tuple(_typed(name, each, choices[0]) for each in value)
    if get_origin(kind) is dict:
        if not isinstance(value, Mapping):
            raise ValueError(f"{name}: is {value!r}; give keys and numbers, such as {{forces: 10}}")
        return {str(key): _typed(f"{name}.{key}", each, float) for key, each in value.items()}
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{name}: is {value!r}; give {words[kind]}")
    return value
