"""Weights in the format safetensors: a header of JSON and the bytes of the tensors, nothing to run.

The format is eight bytes with the length of the header, the header
`{name: {"dtype", "shape", "data_offsets"}}`, and the tensors one after the other, little-endian.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from symgnn.store import write_whole

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "BOOL": torch.bool,
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


def write_safetensors(path: Path, tensors: Mapping[str, Tensor]) -> Path:
    """Write tensors, in the order of their names."""
    header: dict[str, object] = {}
    parts, end = [], 0
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        content = tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
        offsets = [end, end := end + len(content)]
        shape = list(tensor.shape)
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": shape, "data_offsets": offsets}
        parts.append(content)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return write_whole(path, len(text).to_bytes(8, "little") + text + b"".join(parts))


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """Read tensors; a damaged file gives an error of one line."""
    whole = path.read_bytes()
    try:
        size = int.from_bytes(whole[:8], "little")
        header = json.loads(whole[8 : 8 + size])
        header.pop("__metadata__", None)
        body, found = whole[8 + size :], {}
        for name, entry in header.items():
            start, end = entry["data_offsets"]
            dtype, shape = DTYPES[entry["dtype"]], entry["shape"]
            wanted = math.prod(shape) * torch.empty((), dtype=dtype).element_size()
            if end - start != wanted or not 0 <= start <= end <= len(body):
                raise ValueError(name)
            content = bytearray(body[start:end])
            flat = (
                torch.frombuffer(content, dtype=dtype) if content else torch.empty(0, dtype=dtype)
            )
            found[name] = flat.reshape(shape)
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError):
        raise ValueError(f"{path}: is no safetensors file, or is damaged; restore it") from None
    return found
