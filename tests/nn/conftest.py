"""Fixtures of the tests of networks."""

import functools
from collections.abc import Iterator

import pytest
from torch_geometric.nn.models import dimenet_utils


@pytest.fixture(autouse=True, scope="session")
def _symbols_once() -> Iterator[None]:
    """PyG derives its spherical functions with sympy for each network: here once for each size."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("bessel_basis", "real_sph_harm"):
            patch.setattr(dimenet_utils, name, functools.cache(getattr(dimenet_utils, name)))
        yield
