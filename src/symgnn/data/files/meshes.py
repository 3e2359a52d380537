"""Meshes and point clouds by trimesh."""

from __future__ import annotations

from typing import Any

import numpy as np

from symgnn.data.files.structure import How, Piece, Structure

SUFFIXES = (".obj", ".ply", ".stl", ".off")


def parse(piece: Piece, how: How) -> list[Structure]:
    """The vertices in the order of the file (STL: merged), and the triangles, if there are any."""
    import trimesh

    stl = piece.path.suffix.lower() == ".stl"  # which repeats every vertex
    loaded: Any = trimesh.load(piece.path, process=stl, maintain_order=True)
    if isinstance(loaded, trimesh.Scene):
        raise ValueError("has no mesh, or several; give one file for each")
    faces = getattr(loaded, "faces", None)
    face = None if faces is None or not len(faces) else np.asarray(faces, dtype=np.int64).T
    stem = piece.path.stem
    return [
        Structure(
            stem,
            piece.where,
            np.asarray(loaded.vertices, dtype=np.float64),
            face=face,
            aliases=(piece.path.name,),
        )
    ]
