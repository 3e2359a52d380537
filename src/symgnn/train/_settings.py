"""How a model is trained: the section `train` of a config."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from symgnn._argument_checks import (
    check_at_least,
    check_count,
    check_finite,
    check_positive,
    closest,
)


@dataclass(frozen=True)
class Training:
    """The settings of training: the section `train` of a config, and the options of `symgnn.fit`.

    Example:
        >>> symgnn.train.Training(epochs=3, seeds=2).groups
        [[1, 2]]
    """

    epochs: int = 100
    batch_size: int = 32  # graphs in a step, over all devices
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    seed: int = 1  # of the first initialisation, and of the order of the graphs
    seeds: int = 1  # how many initialisations
    together: bool = True  # whether they are trained as one computation
    loss: Literal["mse", "mae", "huber"] = "mse"  # of regression; classes have cross-entropy
    class_weights: Literal["none", "balanced"] = "none"
    standardise: bool = True  # targets of regression to mean 0 and deviation 1, vectors to size 1
    schedule: Literal["none", "plateau", "cosine"] = "none"
    warmup: float = 0.0  # epochs in which the learning rate rises to its full size
    plateau_patience: int = 10  # epochs without a better validation before the rate is lowered
    plateau_factor: float = 0.5
    patience: int | None = None  # epochs without a better validation before training stops
    monitor: str = "loss"  # the number of the validation graphs that chooses the best weights
    weights: Literal["best", "last"] = "best"  # those of the best validation, or of the last epoch
    validate_every: int = 1  # epochs; what is trained is saved then
    clip: float | None = None  # the largest norm of the gradient
    drop_last: bool = False  # leave out the last graphs of an epoch that do not fill a batch
    precision: Literal["32", "64", "16", "bf16"] = "32"
    compile: bool = False
    devices: int = 1
    accelerator: str = "auto"
    workers: int = 0  # processes that prepare batches
    targets: tuple[str, ...] | None = None  # of a potential: energy, forces, stress
    target_weights: dict[str, float] | None = None  # of their parts of the loss; 1 if left out
    references: dict[str, float] | None = None  # energies of elements in eV; fitted if left out

    def __post_init__(self) -> None:
        least = {"epochs": 1, "batch_size": 1, "seeds": 1, "devices": 1, "validate_every": 1}
        for name in ("seed", "workers", "warmup", "weight_decay"):
            least[name] = 0
        for name in ("plateau_patience", "patience"):
            least[name] = 1
        for name, bound in least.items():
            given = getattr(self, name)
            if given is not None and name in ("warmup", "weight_decay"):
                check_at_least(f"train.{name}", given, bound)
            elif given is not None:
                check_count(f"train.{name}", given, bound)
        if self.seed + self.seeds > 2**63:
            raise ValueError(f"train.seed: is {self.seed}; give a number below 2**63")
        for name in ("learning_rate", "clip"):
            given = getattr(self, name)
            if given is not None:
                check_positive(f"train.{name}", given)
        check_potential(self.targets, self.target_weights, self.references)
        if not 0 < self.plateau_factor < 1:
            given = self.plateau_factor
            raise ValueError(f"train.plateau_factor: is {given}; give a number between 0 and 1")

    @property
    def groups(self) -> list[list[int]]:
        """The seeds in groups; the seeds of a group are trained in one computation.

        Seeds are trained one after the other if the model is compiled or a potential, or if the
        learning rate depends on the validation (`schedule="plateau"`).
        """
        seeds = list(range(self.seed, self.seed + self.seeds))
        alone = self.compile or self.schedule == "plateau" or self.targets is not None
        if self.together and not alone:
            return [seeds]
        return [[seed] for seed in seeds]

    @property
    def group_names(self) -> list[str]:
        """The directory of each group."""
        return [
            f"seed-{seeds[0]}" if len(seeds) == 1 else f"seeds-{seeds[0]}-{seeds[-1]}"
            for seeds in self.groups
        ]


#: The targets of a potential.
TARGETS = ("energy", "forces", "stress")


def check_potential(targets: object, weights: object, references: object) -> None:
    """The settings of a potential: names that are known, weights that are positive numbers."""
    if targets is None:
        for name, given in (("target_weights", weights), ("references", references)):
            if given is not None:
                raise ValueError(
                    f"train.{name}: is for potentials; give train.targets, such as [energy, forces]"
                )
        return
    if isinstance(targets, str) or "energy" not in targets:  # type: ignore[operator]
        raise ValueError(f"train.targets: is {targets!r}; give a list with energy in it")
    for name in targets:  # type: ignore[attr-defined]
        _check_target("targets", name, TARGETS)
    for name, weight in (weights or {}).items():  # type: ignore[attr-defined]
        _check_target("target_weights", name, targets)  # type: ignore[arg-type]
        check_positive(f"train.target_weights.{name}", weight)
    for element, energy in (references or {}).items():  # type: ignore[attr-defined]
        check_finite(f"train.references.{element}", energy)


def _check_target(option: str, name: object, known: Sequence[str]) -> None:
    if name not in known:
        near = closest(str(name), list(known))
        hint = f"did you mean {near!r}?" if near else f"choose from {', '.join(known)}"
        raise ValueError(f"train.{option}: {name!r} is not known; {hint}")
