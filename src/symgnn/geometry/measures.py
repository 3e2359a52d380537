"""Functions of coordinates that networks read, in any dimension, with finite gradients.

Conventions at the places where a quantity is not differentiable or not defined:

- the length of a zero vector is 0 and its gradient is 0;
- the direction of a zero vector is the zero vector, with gradient 0;
- the angle at collinear rays is 0 or pi with gradient 0 (the mean of the one-sided ones), and the
  angle with a ray of length zero is 0 with gradient 0;
- kappa of a pair with a ray of length zero is 0 and the pair is left out of the vertex's mean;
  where that mean is 0 (all neighbours in one place), kappa is 0.

Types below float32 are computed in float32. Angles are measured in two steps, so that what
belongs to a ray is computed once per ray and not once per pair of rays.
"""

import torch
from torch import Tensor


def at_least_float32(x: Tensor) -> Tensor:
    """Convert half types to float32; other types are unchanged."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def root(square: Tensor) -> Tensor:
    """The square root, with gradient 0 at 0."""
    zero = square == 0  # not `> 0`: what is not a number must stay so
    # the inner `where` keeps the infinite derivative of the root out of the backward pass
    return torch.where(zero, 0.0, torch.where(zero, 1.0, square).sqrt())


def squared_distance(x: Tensor, y: Tensor) -> Tensor:
    """The squared distance `|x - y|^2`; no root is taken.

    Args:
        x: Points.
        y: Points.

    Returns:
        The squared distances.

    Shapes:
        x `[..., n]`, y `[..., n]` -> `[...]`.

    Example:
        >>> symgnn.geometry.squared_distance(torch.tensor([3.0, 0.0]), torch.tensor([0.0, 4.0]))
        tensor(25.)
    """
    return (at_least_float32(x) - at_least_float32(y)).square().sum(-1)


def length(vector: Tensor) -> Tensor:
    """The Euclidean length `[..., n] -> [...]`, with gradient 0 at the zero vector.

    The vector is divided by its largest entry before squaring, so that no length that the type
    can hold overflows or vanishes on the way.

    Args:
        vector: Vectors.

    Returns:
        Their lengths.

    Shapes:
        vector `[..., n]` -> `[...]`.

    Example:
        >>> symgnn.geometry.length(torch.tensor([3e30, 4e30]))
        tensor(5.0000e+30)
    """
    vector = at_least_float32(vector)
    scale = vector.detach().abs().amax(-1, keepdim=True)
    scale = torch.where(scale == 0, 1.0, scale)
    return root((vector / scale).square().sum(-1)) * scale.squeeze(-1)


def direction(vector: Tensor) -> Tensor:
    """The unit vector in the direction of a vector; zero, with gradient zero, for the zero vector.

    Args:
        vector: Vectors.

    Returns:
        Vectors of length 1 or 0.

    Shapes:
        vector `[..., n]` -> `[..., n]`.

    Example:
        >>> symgnn.geometry.direction(torch.tensor([[0.0, 2.0], [0.0, 0.0]]))
        tensor([[0., 1.],
                [0., 0.]])
    """
    vector = at_least_float32(vector)
    largest = vector.detach().abs().amax(-1, keepdim=True)
    zero = largest == 0
    vector = vector / largest.masked_fill(zero, torch.inf)  # 0 of the zero vector
    return vector / (vector.square().sum(-1, keepdim=True) + zero).sqrt()


def angle(first: Tensor, second: Tensor) -> Tensor:
    """The angle between two rays, in radians, from 0 to pi.

    Args:
        first: The first ray of each angle, from the vertex.
        second: The second ray.

    Returns:
        The angles; 0, with gradient 0, where a ray has length zero.

    Shapes:
        first `[..., n]`, second `[..., n]` -> `[...]`.

    Example:
        >>> symgnn.geometry.angle(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 5.0]))
        tensor(1.5708)
    """
    return angle_of_directions(direction(first), direction(second))


def angle_of_directions(p: Tensor, q: Tensor) -> Tensor:
    """The angle between unit vectors, `2 atan2(|p - q|, |p + q|)`.

    Exact to rounding at every angle, where acos loses half of the digits near 0 and pi.
    """
    difference, total = (p - q).square().sum(-1), (p + q).square().sum(-1)
    # two unit vectors have |p - q|^2 + |p + q|^2 = 4; with a zero ray it is 2 or 0
    undefined = (difference + total).detach() < 3
    theta = 2 * torch.atan2(root(difference), torch.where(undefined, 1.0, root(total)))
    return torch.where(undefined, 0.0, theta)


def kappa(rays: Tensor) -> Tensor:
    """The Moebius invariant of the pairs of rays at each vertex.

    With `s_jik = |x_j - x_k| / (|x_j - x_i| |x_k - x_i|)`, a conformal map changes s only by a
    factor of the vertex i, so `kappa_jik = s_jik / mean_jk(s_jik)` is invariant under
    translations, rotations, reflections, dilations, inversions and special conformal maps.

    Args:
        rays: The rays from m vertices of degree d to their neighbours.

    Returns:
        A number for each pair of rays, in the order of :func:`ray_pairs`.

    Shapes:
        rays `[m, d, n]` -> `[m, d, d - 1]`.

    Example:
        >>> rays = torch.randn(1, 4, 3, dtype=torch.float64)
        >>> torch.allclose(symgnn.geometry.kappa(rays), symgnn.geometry.kappa(3 * rays))
        True
    """
    m, d, n = rays.shape
    vertex = torch.arange(m, device=rays.device)
    inverted = inverted_rays(rays.flatten(0, 1), vertex.repeat_interleave(d), m)
    first, second = ray_pairs(inverted.view(m, d, n + 1))
    first = first.expand_as(second)
    of_pair = vertex.repeat_interleave(d * (d - 1))
    pairs = kappa_of_inverted(first.flatten(0, 2), second.flatten(0, 2), of_pair, m)
    return pairs.view(m, d, d - 1)


def inverted_rays(rays: Tensor, vertex: Tensor, vertices: int) -> Tensor:
    """Each ray r as `r / |r|^2`, and a last entry that says whether it has a length.

    `[R, n] -> [R, n + 1]`, given the number of its vertex `[R]` and of all vertices. The distance
    of two inverted rays is s (see :func:`kappa`), up to a factor of the vertex.
    """
    rays = at_least_float32(rays)
    # kappa does not change when the rays of a vertex are scaled, so a constant may be taken out
    largest = rays.detach().abs().amax(-1)
    largest = largest.new_zeros(vertices).scatter_reduce(0, vertex, largest, "amax")
    scale = largest.index_select(0, vertex).unsqueeze(-1)
    rays = rays / torch.where(scale == 0, 1.0, scale)
    norm = length(rays).unsqueeze(-1)
    zero = norm == 0
    inverted = direction(rays) / torch.where(zero, 1.0, norm)
    return torch.cat([inverted, 1 - zero.to(inverted)], -1)


def kappa_of_inverted(first: Tensor, second: Tensor, vertex: Tensor, vertices: int) -> Tensor:
    """Kappa of pairs of inverted rays, `[A, n + 1], [A, n + 1], [A] -> [A]`."""
    defined = first[:, -1] * second[:, -1]
    s = length(first[:, :-1] - second[:, :-1]) * defined
    sums = s.new_zeros(vertices, 2).index_add(0, vertex, torch.stack([s, defined], -1))
    mean = (sums[:, 0] / sums[:, 1].clamp(min=1)).index_select(0, vertex)
    zero = mean == 0
    return torch.where(zero, 0.0, s / torch.where(zero, 1.0, mean))


def ray_pairs(rays: Tensor) -> tuple[Tensor, Tensor]:
    """All ordered pairs of different rays at each vertex.

    Args:
        rays: The rays of m vertices of degree d, or values of theirs.

    Returns:
        The first rays and the second rays, in the order of the rays, without the first itself.

    Shapes:
        rays `[m, d, h]` -> `[m, d, 1, h]`, `[m, d, d - 1, h]`.

    Example:
        >>> first, second = symgnn.geometry.ray_pairs(torch.tensor([[[1], [2], [3]]]))
        >>> second[0, :, :, 0].tolist()
        [[2, 3], [1, 3], [1, 2]]
    """
    d = rays.shape[1]
    ray = torch.arange(d, device=rays.device)
    second = ray[None, :-1] + (ray[None, :-1] >= ray[:, None])
    return rays.unsqueeze(2), rays[:, second]
