"""Fixtures for all tests."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory):
    """Nothing is read from or left in the cache of the user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("SYMGNN_DATA", raising=False)
        yield


@pytest.fixture
def one_thread():
    """Threads make many small matrices slower, not faster."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
