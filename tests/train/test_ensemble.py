"""Several initialisations as one computation."""

import platform
from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

import symgnn
from helpers import train_ensemble
from symgnn.train import Ensemble, _ensemble, keep_memory
from symgnn.train._replay import record


def solids() -> Batch:
    return Batch.from_data_list(symgnn.data.polytopes(3))


def make(name: str = "dgn", **options: object) -> nn.Module:
    return symgnn.nn.build(name, dimension=3, hidden=8, outputs=5, **options)  # type: ignore[arg-type]


def cross_entropy(outputs: Tensor, data: Data) -> Tensor:
    return nn.functional.cross_entropy(outputs, data.y)


def some(*cases: tuple, of: Iterable[tuple]) -> list[Any]:
    """These cases, and all others as slow ones."""
    others = (case for case in of if case not in cases)
    return [*cases, *(pytest.param(*case, marks=pytest.mark.slow) for case in others)]


NAMES = ("gn", "sdgn", "agn", "cgn")
MAPS = ("identity", "neighbour-sum", "scale-u")


@pytest.mark.parametrize(
    ("name", "psi"),
    some(
        ("gn", "scale-u"),
        ("sdgn", "identity"),
        ("agn", "neighbour-sum"),
        ("cgn", "identity"),
        of=product(NAMES, MAPS),
    ),
)
def test_seed_s_of_many_is_seed_s_alone(name: str, psi: str) -> None:
    """Trained together or alone, or by an ordinary loop: the same, to rounding."""
    data = solids()
    data.pos = data.pos.double()
    together = Ensemble(lambda: make(name, coordinate_map=psi).double(), 3)
    losses = train_ensemble(together, data, cross_entropy, 20)
    alone = Ensemble(lambda: make(name, coordinate_map=psi).double(), [2])
    found = train_ensemble(alone, data, cross_entropy, 20)
    torch.testing.assert_close(found[:, 0], losses[:, 2])
    torch.testing.assert_close(alone(data)[0], together(data)[2])

    torch.manual_seed(2)
    model = make(name, coordinate_map=psi).double()
    optimiser = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(20):
        optimiser.zero_grad()
        cross_entropy(model(data), data).backward()
        optimiser.step()
    torch.testing.assert_close(together(data)[2], model(data))
    torch.testing.assert_close(together.member(2)(data), model(data))


@pytest.mark.parametrize(
    ("name", "psi", "count"),
    some(
        ("gn", "identity", 1),
        ("sdgn", "neighbour-sum", 1),
        ("agn", "neighbour-sum", 3),
        ("cgn", "identity", 3),
        of=product(NAMES, MAPS[:2], (1, 3)),
    ),
)
def test_a_recorded_step_is_the_step(name: str, psi: str, count: int) -> None:
    """Replayed from a record, training is the same to the last digit (from PyTorch 2.13 on)."""
    losses = [
        train_ensemble(
            Ensemble(lambda: make(name, coordinate_map=psi), count),
            solids(),
            cross_entropy,
            15,
            record=record,
        )
        for record in (True, False)
    ]
    if torch.__version__ < "2.13":
        torch.testing.assert_close(*losses)
    else:
        assert torch.equal(*losses)


@pytest.mark.parametrize(
    ("name", "count"), [("agn-separable", 1), ("agn-separable", 3), ("cgn-separable", 1)]
)
def test_steps_of_separable_networks_are_recorded(name: str, count: int) -> None:
    """Their constants do not hinder it; gradients are those of the step that is not recorded."""
    data = solids()
    data.pos = data.pos.double()
    ensemble = Ensemble(lambda: make(name).double(), count)
    recorded = ensemble.recorded(cross_entropy, data)
    assert recorded is not None

    def gradients(step: Callable[[], Tensor]) -> list[Tensor]:
        for parameter in ensemble.parameters():
            parameter.grad = None
        losses = step()
        return [losses, *(p.grad for p in ensemble.parameters() if p.grad is not None)]

    found = gradients(lambda: recorded(data))
    expected = gradients(lambda: ensemble.gradients(cross_entropy, data))
    for one, other in zip(found, expected, strict=True):
        assert (one - other).abs().max() < 1e-10 * other.abs().max().clamp(min=1.0)


def test_what_depends_on_the_data_alone_is_computed_once() -> None:
    table, calls = torch.randn(4, 3), []

    class Counting(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            calls.append(func.__name__.split(".")[0])
            return func(*args, **(kwargs or {}))

    step = record(lambda p: (table.cos() @ p[0]).square().sum().unsqueeze(0), [torch.ones(3)])
    with Counting():
        losses, gradients = step([torch.ones(3)])
    assert "cos" not in calls
    assert "mv" in calls
    assert torch.allclose(losses, table.cos().sum(1).square().sum())
    assert torch.allclose(gradients[0], 2 * table.cos().T @ table.cos().sum(1))


def test_random_operations_stay_random() -> None:
    step = record(lambda p: (nn.functional.dropout(p[0], 0.5)).sum().unsqueeze(0), [torch.ones(99)])
    draws = {float(step([torch.ones(99)])[0]) for _ in range(5)}
    assert len(draws) > 1


def test_a_model_with_buffers_is_not_recorded() -> None:
    class Normed(nn.Module):
        """Has buffers, which a step may change."""

        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 5)
            self.register_buffer("scale", torch.ones(3))

        def forward(self, data: Data) -> Tensor:
            return self.linear(data.pos[:5] * self.scale)

    ensemble = Ensemble(Normed, 2)
    assert ensemble.recorded(cross_entropy, solids()) is None
    losses = train_ensemble(ensemble, solids(), cross_entropy, 5)
    assert bool((losses[-1] < losses[0]).all())
    assert set(ensemble.states()[1]) == {"linear.weight", "linear.bias", "scale"}


def test_keep_memory_says_whether_it_could() -> None:
    assert keep_memory() == (platform.libc_ver()[0] == "glibc")


def test_seeds_differ_and_the_global_generator_is_left_alone() -> None:
    torch.manual_seed(123)
    expected = torch.randn(3)
    torch.manual_seed(123)
    seeds = Ensemble(make, 4)
    assert torch.equal(torch.randn(3), expected)
    outputs = seeds(solids())
    assert outputs.shape == (4, 5, 5)
    assert (outputs[0] - outputs[1]).abs().max() > 1e-3


def test_training_learns() -> None:
    ensemble = Ensemble(lambda: make("agn", aggregation="sum"), 2)
    losses = train_ensemble(ensemble, solids(), cross_entropy, 150)
    assert losses.shape == (150, 2)
    assert (losses[-1] < 0.5 * losses[0]).all()


@pytest.mark.parametrize("count", [1, 3])
def test_states_are_those_of_ordinary_models(count: int) -> None:
    ensemble, other = Ensemble(make, count), Ensemble(make, range(7, 7 + count))
    states = ensemble.states()
    other.load_states(states)
    assert torch.equal(ensemble(solids()), other(solids()))
    model = make()
    model.load_state_dict(states[-1])
    torch.testing.assert_close(model(solids()), ensemble(solids())[-1])
    with pytest.raises(ValueError, match="states: there are"):
        other.load_states([*states, *states])


@pytest.mark.parametrize("count", [2, 3])  # one after the other, and together
def test_each_seed_draws_its_own_dropout(count: int) -> None:
    ensemble = Ensemble(lambda: make(dropout=0.5), [7] * count)
    assert ensemble.together(solids()) == (1 if count == 2 else 3)
    first, second = ensemble.train()(solids())[:2]
    assert not torch.allclose(first, second)
    first, second = ensemble.eval()(solids())[:2]
    torch.testing.assert_close(first, second)


def test_no_seeds_is_an_error() -> None:
    with pytest.raises(ValueError, match="seeds: is 0; give at least one"):
        Ensemble(make, 0)


class _Turned(nn.Module):
    """Two weights whose gradients lie in memory as their transposes, one as the weight itself."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.randn(3, 2, dtype=torch.float64))
        self.second = nn.Parameter(torch.randn(2, 3, dtype=torch.float64).T)

    def forward(self, data: Data) -> Tensor:
        return (data.x @ self.first.T.contiguous() * (data.x @ self.second.T)).sum(1, keepdim=True)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("recorded", [False, True])
def test_a_fused_optimiser_reads_gradients_in_order(count: int, recorded: bool) -> None:
    data = Data(x=torch.arange(8.0, dtype=torch.float64).view(4, 2))
    ends = []
    for fused in (True, False):
        ensemble = Ensemble(_Turned, count)
        optimiser = torch.optim.Adam(ensemble.parameters(), 0.1, fused=fused)
        step = ensemble.recorded(_square, data) if recorded else None
        assert (step is not None) == recorded
        for _ in range(3):
            if step is None:
                ensemble.gradients(_square, data)
            else:
                step(data)
            for parameter in ensemble.parameters():
                assert parameter.grad is not None
                assert parameter.grad.stride() == parameter.stride()
            optimiser.step()
        ends.append([p.detach().clone() for p in ensemble.parameters()])
    torch.testing.assert_close(*ends)


def _square(outputs: Tensor, _: Data) -> Tensor:
    return outputs.square().mean()


@pytest.mark.parametrize(
    ("count", "copies", "size"),
    # 180 edges for each copy of the solids
    [
        (1, 1, 1),
        (2, 1, 1),
        (3, 1, 3),
        (10, 1, 10),
        (10, 20, 5),
        (6, 27, 6),
        (10, 28, 1),
        (7, 27, 1),
    ],
)
def test_how_many_members_go_together(count: int, copies: int, size: int) -> None:
    data = Batch.from_data_list(solids().to_data_list() * copies)
    assert Ensemble(lambda: make("gn"), count).together(data) == size


@pytest.mark.parametrize("name", ["gn", "agn", "agn-separable"])
def test_members_together_and_one_by_one_are_the_same(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs, losses and gradients, as a step and as a recorded one."""
    data = solids()
    data.pos = data.pos.double()

    def found() -> list[Tensor]:
        ensemble = Ensemble(lambda: make(name).double(), 3)
        recorded = ensemble.recorded(cross_entropy, data)
        assert recorded is not None
        values = [ensemble(data).detach()]
        for step in (recorded, partial(ensemble.gradients, cross_entropy)):
            values += [step(data, 1.0), *(p.grad for p in ensemble.parameters())]
        assert ensemble.together(data) == expected
        return values

    expected = 3
    together = found()
    monkeypatch.setattr(_ensemble, "ROWS_OF_ONE", 0)
    expected = 1
    for one, other in zip(found(), together, strict=True):
        torch.testing.assert_close(one, other)
