"""Checkpoints are read without running what is in them, or refused in one line."""

import os
import pickle
from pathlib import Path

import pytest
import torch

from symgnn.train._checkpoint import read_checkpoint, with_digest, write_checkpoint


class Code:
    """A pickle that makes a directory when it is read."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_a_checkpoint_comes_back(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path / "a.ckpt", {"members": [{"w": torch.ones(2)}], "epoch": 3})
    found = read_checkpoint(path)
    assert found["epoch"] == 3
    assert torch.equal(found["members"][0]["w"], torch.ones(2))
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_that_a_file_holds_is_run(tmp_path: Path) -> None:
    path, made = tmp_path / "evil.ckpt", tmp_path / "made"
    torch.save({"kind": "symgnn checkpoint", "version": 2, "w": Code(str(made))}, path)
    path.write_bytes(with_digest(path.read_bytes()))
    with pytest.raises(ValueError, match="holds more than weights"):
        read_checkpoint(path)
    path.write_bytes(pickle.dumps(Code(str(made))))
    with pytest.raises(ValueError, match=r"evil.ckpt: "):
        read_checkpoint(path)
    assert not made.exists()


def test_damaged_files(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path / "a.ckpt", {"w": torch.randn(300)})
    whole = path.read_bytes()
    for length in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"a.ckpt: .*damaged") as caught:
            read_checkpoint(path)
        assert "\n" not in str(caught.value)
    for place in range(0, len(whole), 97):  # a wrong byte, wherever it is
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        with pytest.raises(ValueError, match=r"a.ckpt: .*damaged"):
            read_checkpoint(path)


def test_torch_reads_a_checkpoint_without_symgnn(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path / "a.ckpt", {"members": [{"w": torch.ones(2)}]})
    found = torch.load(path, weights_only=True)
    assert torch.equal(found["members"][0]["w"], torch.ones(2))


def test_foreign_files(tmp_path: Path) -> None:
    path = tmp_path / "a.ckpt"
    torch.save({"state_dict": {}}, path)
    with pytest.raises(ValueError, match="does not end with its checksum, or is no checkpoint"):
        read_checkpoint(path)
    path.write_bytes(with_digest(path.read_bytes()))
    with pytest.raises(ValueError, match="was not written by symgnn train"):
        read_checkpoint(path)
    torch.save({"kind": "symgnn checkpoint", "version": 99}, path)
    path.write_bytes(with_digest(path.read_bytes()))
    with pytest.raises(ValueError, match="has version 99, this symgnn reads 2"):
        read_checkpoint(path)
    with pytest.raises(ValueError, match="is not there"):
        read_checkpoint(tmp_path / "b.ckpt")
