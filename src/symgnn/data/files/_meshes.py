"""Meshes and point clouds by trimesh."""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from symgnn._argument_checks import shown
from symgnn.data.files._file_structure import FileStructure, How, Piece

SUFFIXES = (".obj", ".ply", ".stl", ".off")


def parse(piece: Piece, how: How) -> list[FileStructure]:
    """The vertices in the order of the file (STL: equal ones once), and the triangles, if any."""
    log = logging.getLogger("trimesh")
    before = log.level
    log.setLevel(logging.CRITICAL)  # what it cannot read is said once, by the error
    try:
        return [_parse(piece)]
    finally:
        log.setLevel(before)


def _parse(piece: Piece) -> FileStructure:
    import trimesh

    suffix = piece.path.suffix.lower()
    loaded: Any
    lines: list[tuple[int, int]] = []
    if suffix == ".obj":
        text, lines = shape_of_obj(piece.path)
        shape = io.StringIO(text)
        loaded = trimesh.load(shape, file_type="obj", process=False, maintain_order=True)
    else:
        if suffix in DECLARED or (suffix == ".stl" and is_text_stl(piece.path)):
            check_whole(piece.path)
        loaded = trimesh.load(piece.path, process=False)
    if isinstance(loaded, trimesh.Scene):
        parts = [part for part in loaded.dump() if len(getattr(part, "faces", ()))]
        if not parts:
            raise ValueError("has no mesh")
        loaded = trimesh.util.concatenate(parts)
    vertices = np.asarray(loaded.vertices, dtype=np.float64)
    faces = getattr(loaded, "faces", None)
    face = None if faces is None or not len(faces) else np.asarray(faces, dtype=np.int64).T
    if suffix == ".stl" and face is not None:  # which repeats a vertex for each triangle
        _, first, which = np.unique(vertices, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        vertices, face = vertices[first[order]], np.argsort(order)[which.reshape(-1)][face]
    structure = FileStructure(
        piece.path.stem, piece.where, vertices, face=face, aliases=(piece.path.name,)
    )
    if lines:
        sides = [] if face is None else [face[[a, b]].T for a, b in ((0, 1), (1, 2), (2, 0))]
        pairs = np.concatenate([np.array(lines, dtype=np.int64), *sides])
        structure.edges = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0).T
        structure.joined = "mesh"
    return structure


#: Formats of text that say beforehand how many lines they have.
DECLARED = (".ply", ".off")


def check_whole(path: Path) -> None:
    """A file of text has as many vertices and faces as it says; an STL only whole triangles."""
    content = path.read_bytes()
    if path.suffix.lower() == ".ply" and b"format ascii" not in content[:4096]:
        return  # trimesh counts the bytes
    text = content.decode("utf-8-sig", errors="replace")
    lines = [line.split("#")[0].split() for line in text.splitlines()]
    lines = [line for line in lines if line]
    if path.suffix.lower() == ".stl":
        check_triangles(lines)
        return
    if path.suffix.lower() == ".ply":
        end = next((k for k, line in enumerate(lines) if line[0] == "end_header"), None)
        if end is None:
            raise ValueError("is damaged: its header has no end")
        elements = [line for line in lines[:end] if line[0] == "element"]
        counts, there = [int(line[2]) for line in elements], len(lines) - end - 1
    else:
        said = lines[0][1:] if len(lines[0]) > 1 else lines[1]
        counts, there = list(map(int, said[:2])), len(lines) - (1 if len(lines[0]) > 1 else 2)
    declared = sum(counts)
    if min(counts, default=0) < 0:
        raise ValueError(f"is damaged: its header says {min(counts)} vertices or faces")
    if there < declared:
        raise ValueError(f"is cut off: it has {there} of {declared} vertices and faces")
    if there > declared:
        raise ValueError(
            f"its header says {declared} vertices and faces, but there are {there}; correct it"
        )


def is_text_stl(path: Path) -> bool:
    """Whether it is of text: a binary one has 50 bytes for each triangle, as many as it says."""
    with path.open("rb") as file:
        start = file.read(84)
    count = int.from_bytes(start[80:84], "little")
    return start.lstrip().startswith(b"solid") and path.stat().st_size != 84 + 50 * count


def check_triangles(lines: Sequence[Sequence[str]]) -> None:
    """Each facet of an STL of text has three vertices with three numbers each, and an end."""
    order = ["facet", "outer", "vertex", "vertex", "vertex", "endloop", "endfacet"]
    inner = [line for line in lines if line[0].lower() not in ("solid", "endsolid")]
    for number, line in enumerate(inner):
        if line[0].lower() != order[number % 7] or (number % 7 in (2, 3, 4) and len(line) != 4):
            raise ValueError(f"is damaged: {shown(' '.join(line))!r} is out of place; replace it")
    if len(inner) % 7 or lines[-1][0].lower() != "endsolid":
        raise ValueError("is cut off: its last triangle or its end is missing; replace it")


def shape_of_obj(path: Path) -> tuple[str, list[tuple[int, int]]]:
    """Vertices and faces only, as by materials and textures trimesh would cut the mesh apart; and
    the edges of its lines, which trimesh does not read.
    """
    kept = []
    edges: list[tuple[int, int]] = []
    vertices = largest = 0
    for number, line in enumerate(
        path.read_text(encoding="utf-8-sig").replace("\\\n", " ").splitlines(), 1
    ):
        kind, *values = line.split("#")[0].split() or [""]
        if kind == "v":
            vertices += 1
            kept.append(" ".join([kind, *values[:3]]))
        elif kind in ("f", "l"):
            corners = [int(value.split("/")[0]) for value in values]
            # counted from 1, or back from the last vertex so far
            corners = [corner if corner > 0 else vertices + 1 + corner for corner in corners]
            if corners and min(corners) < 1:
                raise ValueError(
                    f"line {number}: {shown(line.strip())!r} names a vertex that is not there"
                )
            if kind == "f":
                largest = max([largest, *corners])
                kept.append(" ".join([kind, *map(str, corners)]))
            else:
                edges += [(a - 1, b - 1) for a, b in pairwise(corners)]
    if edges and max(map(max, edges)) >= vertices:
        raise ValueError(f"a line names vertex {max(map(max, edges)) + 1}, of {vertices}")
    if largest > vertices:
        raise ValueError(f"a face names vertex {largest}, of {vertices}")
    return "\n".join(kept) + "\n", edges
