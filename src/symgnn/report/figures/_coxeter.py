"""The Coxeter plane of a regular polytope: the plane that shows most of its symmetry."""

from __future__ import annotations

import numpy as np
from scipy.spatial import ConvexHull


def coxeter_plane(pos: np.ndarray) -> np.ndarray:
    """Orthonormal basis `[n, 2]` of the Coxeter plane of the regular polytope with vertices `pos`.

    The product of the reflections in the walls of a chamber (a Coxeter element) turns the plane by
    the smallest of its angles; onto it, the vertices fall into rings with that symmetry.
    """
    n = pos.shape[1]
    if n == 2:
        return np.eye(2)
    # The wall opposite centre i contains all the other centres: its normal is the dual vector.
    normals = np.linalg.inv(_flag(pos)).T
    element = np.eye(n)
    for normal in normals:
        element = element @ (np.eye(n) - 2 * np.outer(normal, normal) / (normal @ normal))
    values, vectors = np.linalg.eig(element)
    angles = np.where(values.imag > 1e-9, np.angle(values), np.inf)
    vector = vectors[:, np.argmin(angles)]
    return np.linalg.qr(np.stack([vector.real, vector.imag], axis=1))[0]


def _flag(pos: np.ndarray) -> np.ndarray:
    """The centres `[n, n]` of a vertex, an edge on it, a face on that, and so on to a facet."""
    n = pos.shape[1]
    normals = np.unique(np.round(ConvexHull(pos).equations, 6), axis=0)
    # [N, facets]: which vertex lies on which facet
    incident = np.abs(pos @ normals[:, :-1].T + normals[:, -1]) < 1e-4
    face = incident[:, 0]
    centres = [pos[face].mean(axis=0)]
    for dimension in range(n - 2, -1, -1):
        parts = (face & facet for facet in incident.T)
        face = next(part for part in parts if _dimension(pos[part]) == dimension)
        centres.append(pos[face].mean(axis=0))
    return np.array(centres[::-1])


def _dimension(points: np.ndarray) -> int:
    """The dimension of the flat through the points; -1 if there are none."""
    if len(points) == 0:
        return -1
    return int(np.linalg.matrix_rank(points - points[0], tol=1e-4))
