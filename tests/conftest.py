"""Fixtures for all tests."""

import pytest
import torch


@pytest.fixture
def one_thread():
    """Threads make many small matrices slower, not faster."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
