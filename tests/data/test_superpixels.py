"""Images as graphs of superpixels."""

import gzip
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from skimage.color import rgb2lab
from skimage.util import regular_grid
from torch_geometric.loader import DataLoader
from torch_geometric.utils import degree

from shared_data import shared
from symgnn.data import _image_files as image_files
from symgnn.data import load, superpixel_graph
from symgnn.data._image_files import read_images
from symgnn.data._superpixels import neighbours, superpixels

#: Nodes of the first images as published: of MNIST by a run of the benchmark's recipe with the core
#: of SLIC, of CIFAR-10 the first in DGL's documentation.
MNIST_TRAIN = [71, 71, 75, 74, 73]
MNIST_TEST = [74, 71, 46, 66]
CIFAR10_TRAIN = [123, 120, 116]


def random_image(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


# ---------------------------------------------------------------- one image


@pytest.mark.parametrize(
    ("name", "part", "segments", "counts"),
    [
        ("mnist", "train", 75, MNIST_TRAIN),
        ("mnist", "test", 75, MNIST_TEST),
        ("cifar10", "train", 150, CIFAR10_TRAIN),
    ],
)
def test_as_many_nodes_as_the_benchmark(
    name: str, part: str, segments: int, counts: list[int]
) -> None:
    images = read_images(name, part, source="sample").pixels[: len(counts)]
    assert [superpixel_graph(image, segments).num_nodes for image in images] == counts


def test_one_graph() -> None:
    image = read_images("mnist", "train", source="sample").pixels[0]
    labels = superpixels(image, 75)
    graph = superpixel_graph(image, 75, weights=True)
    assert graph.num_nodes == labels.max() + 1 == 71
    assert graph.num_edges == 8 * 71
    assert (degree(graph.edge_index[1]) == 8).all()
    assert not (graph.edge_index[0] == graph.edge_index[1]).any()
    for node in range(71):
        inside = labels == node
        rows, columns = inside.nonzero()
        assert float(graph.x[node]) == pytest.approx(image[inside].mean() / 255, abs=1e-6)
        expected = torch.tensor([rows.mean(), columns.mean()], dtype=torch.float32) / 28
        assert torch.allclose(graph.pos[node], expected, atol=1e-6)
    assert 0 < float(graph.edge_attr.min()) < float(graph.edge_attr.max()) < 1
    for same in (torch.from_numpy(image.copy()), image / 255.0, image[:, :, None]):
        assert torch.equal(superpixel_graph(same, 75).edge_index, graph.edge_index)


def test_edges_are_the_most_similar_as_defined() -> None:
    """From the definition in the benchmark, node by node."""
    pos = np.random.default_rng(1).random((30, 2))
    near, weight = neighbours(pos)
    distance = np.linalg.norm(pos[:, None] - pos, axis=2)
    sigma = [np.sort(row)[:9].sum() / 8 for row in distance]
    for i in range(30):
        similar = {
            j: np.exp(-((distance[i, j] / sigma[i]) ** 2)) / 2
            + np.exp(-((distance[i, j] / sigma[j]) ** 2)) / 2
            for j in range(30)
            if j != i
        }
        best = sorted(similar, key=similar.__getitem__, reverse=True)[:8]
        assert near[i].tolist() == best
        np.testing.assert_allclose(weight[i], [similar[j] for j in best], atol=1e-6)


def test_ties_go_by_number() -> None:
    grid = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), -1).reshape(-1, 2)
    assert neighbours(grid, 2)[0][12].tolist() == [7, 11]  # of 7, 11, 13, 17


def test_few_superpixels_are_all_joined() -> None:
    graph = superpixel_graph(random_image(8, 8), 5)
    assert 2 <= graph.num_nodes <= 5
    assert graph.num_edges == graph.num_nodes * (graph.num_nodes - 1)
    alone = superpixel_graph(np.zeros((2, 2)), 1)
    assert (alone.num_nodes, alone.num_edges) == (1, 0)


@pytest.mark.parametrize("image", [np.zeros((28, 28)), np.full((32, 32, 3), 255, np.uint8)])
def test_uniform_images(image: np.ndarray) -> None:
    graph = superpixel_graph(image, 75)
    assert 40 < graph.num_nodes <= 75
    assert graph.pos.isfinite().all()


def test_sides_of_different_length() -> None:
    graph = superpixel_graph(random_image(20, 40, 3), 60)
    assert graph.num_nodes <= 60
    assert float(graph.pos[:, 0].max()) < 0.5 < float(graph.pos[:, 1].max()) < 1.0


@pytest.mark.parametrize(
    ("image", "segments", "message"),
    [
        (np.zeros((4, 4, 2)), 5, r"image: has shape \(4, 4, 2\); pass \[H, W\]"),
        (np.zeros(4), 5, r"image: has shape \(4,\)"),
        (np.zeros((0, 4)), 5, r"image: has shape \(0, 4\)"),
        (np.full((4, 4), 7.0), 5, "image: values are not in 0 to 255"),
        (np.full((4, 4), np.nan), 5, "image: values are not in 0 to 255"),
        (np.zeros((4, 4)), 0, "segments: is 0; give a whole number of at least 1"),
    ],
)
def test_wrong_images(image: np.ndarray, segments: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        superpixel_graph(image, segments)


# ---------------------------------------------------------------- files


def write_idx(path: Path, array: np.ndarray, pack: bool = True) -> None:
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    content = head + array.tobytes()
    path.write_bytes(gzip.compress(content) if pack else content)


@pytest.mark.parametrize("pack", [True, False])
def test_idx_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: bool) -> None:
    images, labels = random_image(3, 4, 5), random_image(3)
    sources = []
    for name, array in (("images.gz", images), ("labels.gz", labels)):
        write_idx(tmp_path / (name if pack else name.removesuffix(".gz")), array, pack)
        sources.append(image_files.Source("mnist", name, unpacked=True))
    monkeypatch.setitem(image_files.MNIST_FILES, "train", tuple(sources))
    found = read_images("mnist", "train", source=tmp_path)
    np.testing.assert_array_equal(found.pixels, images)
    np.testing.assert_array_equal(found.labels, labels)


def batches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, list[Path]]:
    """Two batches of two images, in the binary format of CIFAR-10."""
    tables = random_image(2, 2, 3073)
    tables[:, :, 0] %= 10
    sources = [image_files.Source("cifar10", f"batch_{k}.bin.gz", unpacked=True) for k in (1, 2)]
    paths = [folder / f"batch_{k}.bin" for k in (1, 2)]
    for table, path in zip(tables, paths, strict=True):
        path.write_bytes(table.tobytes())
    for part in ("train", "test"):
        monkeypatch.setitem(image_files.CIFAR10_BATCHES, part, tuple(sources))
    archive = image_files.Source("cifar10", "cifar.tar.gz")
    monkeypatch.setattr(image_files, "CIFAR10_ARCHIVE", archive)
    return tables.reshape(4, 3073), paths


def test_batches_and_the_archive_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, paths = batches(tmp_path, monkeypatch)
    found = read_images("cifar10", "train", source=tmp_path)
    assert found.labels.tolist() == table[:, 0].tolist()
    assert found.pixels[1, 2, 3].tolist() == table[1, 1:].reshape(3, 32, 32)[:, 2, 3].tolist()
    with tarfile.open(tmp_path / "cifar.tar.gz", "w:gz") as archive:
        for path in paths:
            archive.add(path, f"cifar-10-batches-bin/{path.name}")
            path.unlink()
    again = read_images("cifar10", "train", source=tmp_path)
    np.testing.assert_array_equal(again.pixels, found.pixels)


def test_not_all_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, paths = batches(tmp_path, monkeypatch)
    paths[1].unlink()
    assert len(read_images("cifar10", "train", source=tmp_path).labels) == 2
    options = {"source": tmp_path, "root": tmp_path / "cache"}
    message = "^cifar10: the source has only the first 2 training images, of which 5000 validate"
    with pytest.raises(ValueError, match=message):
        load("cifar10", limit=1, **options)


def test_no_files_and_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYMGNN_DATA", raising=False)
    unreachable = image_files.Source("mnist", "images.gz", ("http://127.0.0.1:9/",), "md5:0")
    monkeypatch.setitem(image_files.MNIST_FILES, "train", (unreachable,))
    with pytest.raises(OSError, match=r"Put images.gz .* into .*mnist, .*files: images.gz"):
        load("mnist", limit=1, root=tmp_path)


# ---------------------------------------------------------------- sets


def test_the_sample() -> None:
    found = load("mnist", source="sample")
    assert [len(part) for part in (found.train, found.validation, found.test)] == [11, 1, 4]
    assert [data.number for data in found.train] == list(range(1, 12))
    assert [data.number for data in found.test] == list(range(12, 16))
    assert [int(data.y) for data in found.test] == [7, 2, 1, 0]
    assert found.task.outputs == 10
    plain = superpixel_graph(read_images("mnist", "train", source="sample").pixels[1], 75)
    assert torch.equal(found.train[0].edge_index, plain.edge_index)
    assert torch.allclose(found.train[0].pos, found.scale * plain.pos)
    batch = next(iter(DataLoader(found.train, batch_size=11)))
    assert batch.y.shape == (11,)
    assert found.train[2:4][1].number == 4
    weighted = load("mnist", source="sample", weights=True).train[0]
    assert weighted.edge_attr.shape == (weighted.num_edges, 1)


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_standardised(name: str) -> None:
    plain, found = (load(name, source="sample", standardise=how) for how in (False, True))
    mean, deviation = (
        torch.tensor(found.about[f"feature {what}"]) for what in ("mean", "deviation")
    )
    x = torch.cat([data.x for data in found.train])
    assert torch.allclose(x * deviation + mean, torch.cat([d.x for d in plain.train]), atol=1e-6)
    assert x.mean(0).abs().max() < 0.4
    assert 0.7 < x.std(0).min() <= x.std(0).max() < 1.3
    pos = torch.cat([data.pos for data in found.train])
    assert pos.mean(0).abs().max() < 0.1 * found.scale
    whole = torch.cat([data.pos for data in plain.train])
    assert torch.allclose(pos + found.scale / 2, whole, atol=1e-5)


def test_kept_and_taken_from_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there is not made again; and of all that is there, a part can be taken."""
    folder = shared("mnist")
    options = {"source": folder, "root": tmp_path, "limit": [30, 20, 20]}
    found = load("mnist", **options)
    assert [len(part) for part in (found.train, found.validation, found.test)] == [30, 20, 20]
    assert found.validation[0].number == 0
    assert found.train[0].number == 5000
    assert found.test[0].number == 60_000
    with monkeypatch.context() as patch:
        patch.setattr("symgnn.data._superpixel_sets.read_images", None)
        again = load("mnist", **options)
    for first, second in zip(found.train, again.train, strict=True):
        for name in ("x", "pos", "edge_index", "y"):
            assert torch.equal(first[name], second[name])
    kept = tmp_path / "mnist" / "superpixels-test-20.npz"
    kept.rename(kept.with_name("superpixels-test-10000.npz"))
    fewer = load("mnist", **options | {"limit": [30, 20, 5]})
    assert len(fewer.test) == 5
    assert torch.equal(fewer.test[4].pos, found.test[4].pos)


@pytest.mark.slow
def test_two_processes_make_the_same_as_one(tmp_path: Path) -> None:
    options = {"source": shared("mnist"), "limit": [250, 1, 1]}
    one, two = (load("mnist", root=tmp_path / str(jobs), jobs=jobs, **options) for jobs in (1, 2))
    for first, second in zip(one.train, two.train, strict=True):
        for name in ("x", "pos", "edge_index", "y"):
            assert torch.equal(first[name], second[name])


@pytest.mark.parametrize(
    ("name", "segments", "mean"), [("mnist", 75, 70.5667), ("cifar10", 150, 117.6334)]
)
def test_mean_numbers_of_nodes(name: str, segments: int, mean: float) -> None:
    """Of some hundred images, near that of all; and image by image, what the core of SLIC gives."""
    images = read_images(name, "test", source=shared(name)).pixels[:200]
    counts = np.array([superpixels(image, segments).max() + 1 for image in images])
    assert counts.mean() == pytest.approx(mean, abs=4 * counts.std() / 200**0.5)
    assert counts[:40].tolist() == [count_as_0_16(image, segments) for image in images[:40]]


def count_as_0_16(image: np.ndarray, segments: int) -> int:
    """The benchmark's recipe with the loops of scikit-image itself, set up as version 0.16 did."""
    core = pytest.importorskip("skimage.segmentation._slic")
    pixels = (image / 255.0).astype(np.float32).reshape(1, *image.shape[:2], -1)
    colour = pixels.shape[3] == 3
    values = rgb2lab(pixels) if colour else pixels
    scaled = np.ascontiguousarray(values * (1 / (10 if colour else 0.25)), dtype=np.float64)
    for asked in range(segments + (50 if colour else 20), 0, -1):
        grid = regular_grid(scaled.shape[:3], asked)
        seeds = np.stack([axis[grid].ravel() for axis in np.indices(scaled.shape[:3])], axis=1)
        centres = np.concatenate([seeds, np.zeros((len(seeds), scaled.shape[3]))], axis=1)
        step = max(float(part.step or 1) for part in grid)
        labels = core._slic_cython(scaled, None, centres, step, 10, np.ones(3), False, 0, False)
        size = scaled[0, :, :, 0].size / asked
        joined = core._enforce_label_connectivity_cython(
            labels, int(0.5 * size), int(3 * size), start_label=0
        )
        if joined.max() < segments:
            return int(joined.max()) + 1
    raise AssertionError


@pytest.mark.slow
def test_mean_number_of_nodes_of_all_of_mnist(tmp_path: Path) -> None:
    found = load("mnist", source=shared("mnist"), root=tmp_path, jobs=2)
    counts = np.concatenate(
        [part.build.arrays["count"] for part in (found.train, found.validation, found.test)]
    )
    assert len(counts) == 70_000
    assert round(float(counts.mean()), 4) == 70.5667
    assert (counts.min(), counts.max()) == (40, 75)


@pytest.mark.slow
def test_mean_number_of_nodes_of_a_part_of_cifar10(tmp_path: Path) -> None:
    """A third of the images; all of them have 117.6334 on average."""
    found = load(
        "cifar10", source=shared("cifar10"), root=tmp_path, jobs=2, limit=[5000, 5000, 10_000]
    )
    counts = np.concatenate(
        [part.build.arrays["count"] for part in (found.train, found.validation, found.test)]
    )
    error = counts.std() / len(counts) ** 0.5
    assert counts.mean() == pytest.approx(117.6334, abs=3 * error)
