"""What happens to freed memory."""

import platform
import subprocess
import sys

import pytest

FREED = """
import torch
from symgnn.train import keep_memory

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096

if {kept}:
    assert keep_memory()
before = resident()
large = torch.ones(2**24)
del large
print(resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told")
@pytest.mark.parametrize("kept", [False, True])
def test_freed_memory_stays_if_asked(kept: bool) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FREED.format(kept=kept)]
    left = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert (int(left) > 2**25) == kept  # of 2**26 bytes
