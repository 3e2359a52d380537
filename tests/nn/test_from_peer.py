"""Every option of every peer is carried over or refused, to the last digit, and goes back."""

import inspect

import pytest
import torch

from nn.from_peer_cases import PEERS, equal, randomised
from symgnn.nn import from_peer, to_peer

CASES = [(name, None) for name in PEERS] + [
    (name, option) for name, peer in PEERS.items() for option in peer.changes
]


@pytest.mark.parametrize("name", PEERS)
def test_every_option_of_the_constructor_is_tried(name: str) -> None:
    peer = PEERS[name]
    known = inspect.signature(peer.make.__init__).parameters
    assert {*known} - {"self", "kwargs"} == {*peer.changes}


@pytest.mark.parametrize(("name", "option"), CASES)
def test_an_option_is_carried_over_or_refused(name: str, option: str | None) -> None:
    peer = PEERS[name]
    given = dict(peer.sizes)
    if option is not None:
        given[option] = peer.changes[option]
    if "output_nf" in given and given["input_nf"] != given["output_nf"]:  # nothing to add to
        given["residual" if "of egnn_clean" in name else "recurrent"] = False
    if option in ("std",):
        given["mean"] = 1.0
    if option == "norm_coors_scale_init":
        given["norm_coors"] = True
    torch.manual_seed(1)
    module = randomised(peer.make(**given))
    if option in peer.refused:
        word = {"act": "activation", "act_fn": "activation", "std": "mean=1"}.get(option, option)
        with pytest.raises(ValueError, match=rf"^from_peer: \w+ .*{word}"):
            from_peer(module)
        return
    equal(peer, module)


@pytest.mark.parametrize("name", PEERS)
def test_weights_are_those_of_the_peer_to_the_last_digit(name: str) -> None:
    peer = PEERS[name]
    module = randomised(peer.make(**peer.sizes))
    ours, back = from_peer(module), peer.make(**peer.sizes).double()
    assert {p.dtype for p in ours.parameters()} == {torch.float64}
    to_peer(ours, back)
    unread = {"coord_mlp"} if name == "EGNN" else {""}  # of the last layer: not read out
    for (key, one), other in zip(module.named_parameters(), back.parameters(), strict=True):
        if name != "EGNN" or not unread & {*key.split(".")}:
            assert torch.equal(one, other), key


@pytest.mark.parametrize("name", PEERS)
def test_mode_and_frozen_parameters_are_carried_over(name: str) -> None:
    peer = PEERS[name]
    module = peer.make(**peer.sizes).eval().requires_grad_(False)
    ours = from_peer(module)
    assert not any(part.training for part in ours.modules())
    assert not any(p.requires_grad for p in ours.parameters())
    assert from_peer(module.train()).training


@pytest.mark.parametrize("name", ["SchNet", "DimeNet"])
def test_a_peer_made_in_double_precision(name: str) -> None:
    """Its constants are in double precision, too."""
    peer = PEERS[name]
    torch.set_default_dtype(torch.float64)
    try:
        module = randomised(peer.make(**peer.sizes))
    finally:
        torch.set_default_dtype(torch.float32)
    equal(peer, module)
