"""Files of every format that `symgnn.data.read` knows, and ways to damage them."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import ase
import ase.build
import ase.io
import numpy as np
import torch
import trimesh
from torch_geometric.data import Data

Generator = np.random.Generator
Damage = Callable[[bytes, Generator], bytes]


class Sample(NamedTuple):
    """A good file: its name, its content, and what has to lie beside it."""

    name: str
    content: bytes
    beside: dict[str, bytes] = {}  # noqa: RUF012


def samples() -> dict[str, Sample]:
    """A good file of each format, by its ending and kind."""
    return {sample.name: sample for sample in _samples()}


def _samples() -> Iterator[Sample]:
    water = ase.build.molecule("H2O")
    water.info["energy"] = -14.2
    water.arrays["forces"] = np.full((3, 3), 0.5)
    frames = [water, ase.build.molecule("CH3OH"), ase.build.molecule("NH3")]
    yield Sample("plain.xyz", _ase(frames[1], "xyz"))
    yield Sample("frames.extxyz", b"".join(_ase(frame, "extxyz") for frame in frames[1:]))
    yield Sample("values.xyz", _ase(water, "extxyz"))
    yield Sample("ethanol.sdf", _MOL + b"> <gap>\n7.5\n\n$$$$\n" + _MOL.replace(b"eth", b"two"))
    yield Sample("ethanol.mol", _MOL)
    yield Sample("some.smi", b"CCO ethanol\nc1ccccc1 benzene\nCC(=O)O acid\n")
    yield Sample("smiles.csv", b"name,smiles,gap [eV]\nethanol,CCO,1.5\nacid,CC(=O)O,2.5\n")
    yield Sample("points.csv", b"graph,x,y,mass\na,0,0,1\na,1,0,2\na,0,1,3\nb,0,0,1\nb,2,0,1\n")
    yield Sample("points.tsv", b"x\ty\tz\n0\t0\t1\n1\t0.5\t0\n0\t1e-3\t0\n")
    edges = b"source,target,w\na,b,1\nb,c,2.5\n"
    nodes = b"node,x,y\na,0,0\nb,1,0\nc,0,1\n"
    yield Sample("net.nodes.csv", nodes, {"net.edges.csv": edges})
    yield Sample("net.edges.csv", edges, {"net.nodes.csv": nodes})
    arrays = {"pos": np.eye(4, 3), "z": np.array([1, 6, 8, 1]), "charge": np.arange(4.0)}
    pairs = np.array([[0, 1, 2], [1, 2, 3]])
    yield Sample("frames.npz", _npz({**arrays, "pos": np.ones((5, 4, 3)) * np.eye(4, 3)}))
    yield Sample("packed.npz", _npz({**arrays, "edge_index": pairs}, np.savez_compressed))
    graph = Data(pos=torch.eye(4, 3), edge_index=torch.from_numpy(pairs), y=torch.ones(1))
    yield Sample("graph.pt", _saved(graph))
    yield Sample("list.pt", _saved([graph.to_dict(), graph]))
    mesh = trimesh.creation.box()
    for kind, options in (
        ("obj", {}), ("off", {}), ("stl", {}), ("stl_ascii", {}), ("ply", {"encoding": "ascii"}),
    ):  # fmt: skip
        exported = mesh.export(file_type=kind, **options)
        content = exported.encode() if isinstance(exported, str) else exported
        yield Sample(f"{kind}.{kind.removesuffix('_ascii')}", content)
    yield Sample("binary.ply", mesh.export(file_type="ply", encoding="binary"))
    yield Sample("lines.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nl 1 4 -1\n")
    crystal = ase.build.bulk("NaCl", "rocksalt", a=5.64, cubic=True)
    molecule = ase.build.molecule("CH3OH", vacuum=3.0)
    for kind in ("cif", "proteindatabank", "traj", "vasp", "gen", "xsf", "gromacs"):
        ending = {"proteindatabank": "pdb", "gromacs": "gro"}.get(kind, kind)
        yield Sample(
            f"atoms.{ending}", _ase(molecule if ending in ("pdb", "gro") else crystal, kind)
        )
    yield Sample("atoms.cube", _cube(molecule))


_MOL = b"""ethanol
     RDKit          3D

  3  2  0  0  0  0  0  0  0  0999 V2000
   -0.9000   -0.1000    0.1000 C   0  0  0  0  0  0  0  0  0  0  0  0
    0.5000    0.4000   -0.1000 C   0  0  0  0  0  0  0  0  0  0  0  0
    1.4000   -0.6000    0.2000 O   0  0  0  0  0  0  0  0  0  0  0  0
  1  2  1  0
  2  3  1  0
M  END
"""


def _ase(atoms: ase.Atoms, kind: str) -> bytes:
    content = io.BytesIO() if kind in ("traj", "cif") else io.StringIO()
    ase.io.write(content, atoms, format=kind)
    found = content.getvalue()
    return found.encode() if isinstance(found, str) else found


def _cube(atoms: ase.Atoms) -> bytes:
    """A grid of 2 x 2 x 2 values, and the atoms."""
    rows = [
        f"{z} 0.0 {x:.4f} {y:.4f} {w:.4f}"
        for z, (x, y, w) in zip(atoms.numbers, atoms.positions, strict=True)
    ]
    axes = ["2 9.0 0.0 0.0", "2 0.0 9.0 0.0", "2 0.0 0.0 9.0"]
    values = ["0.1 0.2 0.3 0.4", "0.5 0.6 0.7 0.8"]
    head = [
        "made by hand",
        "OUTER LOOP: X, MIDDLE LOOP: Y, INNER LOOP: Z",
        f"{len(atoms)} 0.0 0.0 0.0",
    ]
    return "\n".join([*head, *axes, *rows, *values, ""]).encode()


def _npz(arrays: dict[str, np.ndarray], save: Callable[..., None] = np.savez) -> bytes:
    content = io.BytesIO()
    save(content, **arrays)
    return content.getvalue()


def _saved(value: object) -> bytes:
    content = io.BytesIO()
    torch.save(value, content)
    return content.getvalue()


# ---------------------------------------------------------------- files that promise too much

#: Where a sample says how many atoms, vertices, faces or columns it has: what stands before it.
COUNTS = {
    "plain.xyz": [b"^"],
    "frames.extxyz": [b"^", b"species:S:", b"pos:R:"],
    "values.xyz": [b"^", b"forces:R:"],
    "off.off": [b"OFF\n", b"OFF\n\\d+ "],
    "ply.ply": [b"element vertex ", b"element face "],
    "binary.ply": [b"element vertex ", b"element face "],
    "atoms.gen": [b"^ *"],
    "atoms.gro": [b"^[^\n]*\n *"],
    "atoms.cube": [b"^[^\n]*\n[^\n]*\n *"],
    "atoms.vasp": [b"^(?:[^\n]*\n){6} *"],
    "atoms.xsf": [b"PRIMCOORD\n *"],
}


def wrong_counts() -> Iterator[Sample]:
    """Each of these counts, by one or by much too large or too small; none can be read."""
    known = samples()
    for name, places in COUNTS.items():
        for place in places:
            match = re.search(b"(?:" + place + rb")(\d+)", known[name].content)
            assert match is not None, (name, place)
            right = int(match[1])
            for count in (right - 1, right + 1, -right, 10**9 - 1, 10**12, 10**30):
                content = known[name].content
                wrong = content[: match.start(1)] + b"%d" % count + content[match.end(1) :]
                yield Sample(name, wrong)


def hostile() -> Iterator[Sample]:
    """Small files that ask for more than a machine has; none can be read."""
    yield Sample("a.xyz", b"999999999\n\nH 0.0 0.0 0.0")
    yield Sample("a.extxyz", b"1\nProperties=species:S:1:pos:R:3:more:R:999999999\nH 0 0 0\n")
    yield Sample("a.npz", _npz_header((10**12, 3)))
    yield Sample("a.npz", _npz_header((10**18, 10**18)))
    yield Sample("a.npz", _npz_header((-1, 3)))
    yield Sample("a.smi", b"C" * 20_000 + b" chain\n")
    yield Sample("a.smi", b"C(" * 50_000 + b"C" + b")" * 50_000 + b" tree\n")
    yield Sample("a.csv", b"x,y\n" + b"0," * 300_000 + b"0\n")
    yield Sample("a.csv", b"x,y\n0,1e308\n1,0\n2,0\n")
    yield Sample("a.xyz", b"2\n\nO 0 0 1e200\nH 0 0 1\n")
    yield Sample("a.csv", b'x,y\n0,"' + b"1" * 200_000 + b'"\n')
    yield Sample("a.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 999999999\n")
    yield Sample("a.stl", bytes(80) + b"\xff\xff\xff\x7f" + bytes(50))
    v3000 = b"a\n\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\n"
    yield Sample("a.sdf", v3000 + b"M  V30 COUNTS 999999999 999999999 0 0 0\nM  V30 BEGIN ATOM\n")
    yield Sample("a.mol", _MOL.replace(b"  3  2  0", b"999999  0"))


def _npz_header(shape: tuple[int, ...]) -> bytes:
    """An archive with one array of no numbers, whose header says that it has this shape."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    with zipfile.ZipFile(content := io.BytesIO(), "w") as archive:
        archive.writestr("pos.npy", header.getvalue())
    return content.getvalue()


# ---------------------------------------------------------------- damages

#: What numbers of a file are replaced by.
ODD = (
    b"999999999", b"99999999999999999999", b"-1", b"0", b"1", b"7", b"nan", b"inf", b"1e308",
    b"-1e400", b"1e-400", b"2147483648", b"4294967295", b"1_000", b"0x10", b"", b"*", b"'", b'"',
    b"\xc3\xa9", b"\xff",
)  # fmt: skip
NUMBER = re.compile(rb"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")


def cut_off(content: bytes, generator: Generator) -> bytes:
    """Only the beginning is there."""
    return content[: generator.integers(len(content))]


def flip_bits(content: bytes, generator: Generator) -> bytes:
    """One to eight bits are wrong."""
    found = bytearray(content)
    for _ in range(generator.integers(1, 9)):
        found[generator.integers(len(found))] ^= 1 << generator.integers(8)
    return bytes(found)


def odd_numbers(content: bytes, generator: Generator) -> bytes:
    """One to three of its numbers are others."""
    for _ in range(generator.integers(1, 4)):
        places = list(NUMBER.finditer(content))
        if not places:
            return content
        place = places[generator.integers(len(places))]
        odd = ODD[generator.integers(len(ODD))]
        content = content[: place.start()] + odd + content[place.end() :]
    return content


def odd_counts(content: bytes, generator: Generator) -> bytes:
    """One of its first numbers, which are often counts, is huge, negative or slightly wrong."""
    places = list(NUMBER.finditer(content))[:8]
    if not places:
        return content
    place = places[generator.integers(len(places))]
    try:
        near = [b"%d" % (int(place[0]) + step) for step in (-2, -1, 1, 2)]
    except ValueError:
        near = [b"3"]
    odd = [b"999999999", b"999999999999", b"-999999999", *near]
    return content[: place.start()] + odd[generator.integers(len(odd))] + content[place.end() :]


def huge_integers(content: bytes, generator: Generator) -> bytes:
    """Four or eight bytes are those of a huge number, as in the header of a binary file."""
    width = int(generator.choice([4, 8]))
    place = int(generator.integers(max(min(len(content), 400) - width, 1)))
    high = bytes([255] * (width - 1) + [int(generator.choice([0x7F, 0x00, 0xFF]))])
    return content[:place] + high + content[place + width :]


def lose_lines(content: bytes, generator: Generator) -> bytes:
    """Some lines are not there."""
    lines = content.splitlines(keepends=True)
    kept = generator.random(len(lines)) > 0.2
    return b"".join(line for line, keep in zip(lines, kept, strict=True) if keep)


def repeat_lines(content: bytes, generator: Generator) -> bytes:
    """Some lines are there several times, or elsewhere."""
    lines = content.splitlines(keepends=True)
    chosen = generator.integers(len(lines), size=len(lines) + 3)
    return b"".join(lines[number] for number in chosen)


def insert_noise(content: bytes, generator: Generator) -> bytes:
    """Random bytes, or one byte very often, stand in the middle."""
    place = generator.integers(len(content) + 1)
    byte = [b"(", b"[", b"{", b'"', b" ", b"\n", b"\0", b"9", b"C", b"1"][generator.integers(10)]
    noise = [generator.bytes(50), byte * 5000, byte * 200_000][generator.integers(3)]
    return content[:place] + noise + content[place:]


def nest(content: bytes, generator: Generator) -> bytes:
    """A number or word is nested a hundred thousand times."""
    places = list(re.finditer(rb"[\w.]+", content))
    if not places:
        return content
    place = places[generator.integers(len(places))]
    left, right = [(b"[", b"]"), (b"(", b")"), (b"{", b"}"), (b'"', b'"'), (b"-(", b")")][
        generator.integers(5)
    ]
    deep = left * 100_000 + place[0] + right * 100_000
    return content[: place.start()] + deep + content[place.end() :]


def noise(content: bytes, generator: Generator) -> bytes:
    """Nothing of it is left."""
    kinds = [b"", b"\n", b"\0" * 100, b" " * 100, generator.bytes(500), b"PK\x03\x04", b"\x80\x02."]
    return kinds[generator.integers(len(kinds))]


DAMAGES: dict[str, Damage] = {
    damage.__name__: damage
    for damage in (
        cut_off,
        flip_bits,
        odd_numbers,
        odd_counts,
        huge_integers,
        lose_lines,
        repeat_lines,
        insert_noise,
        nest,
        noise,
    )
}


def write(sample: Sample, content: bytes, folder: Path) -> Path:
    """Write the file with this content, and what lies beside it."""
    folder.mkdir(parents=True)
    for name, other in sample.beside.items():
        (folder / name).write_bytes(other)
    path = folder / sample.name
    path.write_bytes(content)
    nodes = folder / sample.name.replace("edges", "nodes")
    return nodes if nodes.exists() else path
