"""Small folders of files that come with the package, to try things on."""

from __future__ import annotations

from pathlib import Path

from symgnn._argument_checks import unknown_name

ROOT = Path(__file__).parents[1] / "samples" / "own"


def sample(name: str) -> Path:
    """The folder of a sample dataset in the package.

    Args:
        name: "molecules", "sdf", "smiles", "meshes", "points" or "network".

    Returns:
        Its path.

    Example:
        >>> symgnn.data.sample("sdf").is_dir()
        True
    """
    known = sorted(path.name for path in ROOT.iterdir() if path.is_dir())
    if name not in known:
        raise ValueError(unknown_name("sample", name, known, "known"))
    return ROOT / name
