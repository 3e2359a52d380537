"""`symgnn explore`: what it shows for a file and for a run, and its errors."""

import socket
from pathlib import Path

import pytest

import symgnn
from symgnn.cli import main
from symgnn.commands.explore import stage_of


def test_a_file_is_shown_first(tmp_path: Path) -> None:
    file = symgnn.data.sample("molecules") / "ethanol.xyz"
    stage = stage_of(None, file)
    assert stage.shapes[0] == "ethanol.xyz"
    assert len(stage.data("ethanol.xyz").pos) == 9
    joined = stage_of(None, file, radius=2.0).data("ethanol.xyz").edge_index
    assert joined.size(1) > stage.data("ethanol.xyz").edge_index.size(1)


def test_a_run_is_watched_on_its_own_data(tmp_path: Path) -> None:
    """On a molecule with types and features of atoms, as the run reads them."""
    folder = symgnn.data.sample("molecules")
    graphs = symgnn.data.read(folder, targets="targets.csv", columns=["dipole"])
    symgnn.fit(graphs, "dgn", epochs=1, out=tmp_path / "mine", progress=False)
    stage = stage_of(tmp_path / "mine", folder / "ethanol.xyz")
    (name, *_) = stage.shapes
    assert name == "mine: ethanol.xyz"
    turned = stage.scene(name, {"turn": 90}).reactions[0]
    larger = stage.scene(name, {"scale": 1.0}).reactions[0]
    assert turned.name == "mine (yours)"
    assert (turned.verdict, larger.verdict) == ("kept", "changes")
    with pytest.raises(ValueError, match="--radius: a run builds edges as in its training"):
        stage_of(tmp_path / "mine", None, radius=2.0)


def test_errors_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("dash", reason="needs symgnn[explore]: dash")
    assert main(["explore", "--data", str(tmp_path / "none.xyz")]) == 2
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["explore", "--port", str(port)]) == 2
    assert main(["explore", "--port", "70000"]) == 2
    damaged = tmp_path / "damaged.xyz"
    damaged.write_text("hello\n")
    ethanol = str(symgnn.data.sample("molecules") / "ethanol.xyz")
    assert main(["explore", "--data", str(damaged)]) == 2
    assert main(["explore", "--radius", "2"]) == 2
    assert main(["explore", "--radius", "-1", "--data", ethanol]) == 2
    assert main(["explore", "solids", "--data", ethanol]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 7
    assert lines[0].startswith("symgnn: --data: there is no ")
    assert lines[1] == f"symgnn: --port: {port} is in use; give another, such as {port + 1}"
    assert lines[2] == "symgnn: --port: is 70000; give a number from 0 to 65535"
    assert lines[3].startswith(f"symgnn: --data: {damaged}, frame 0: begins with 'hello'")
    assert "on_error" not in lines[3]  # an option of `read` that the command has not
    assert lines[4] == "symgnn: --radius: applies to a structure of --data; add --data FILE"
    assert lines[5] == "symgnn: --radius: is -1; give a number above 0"
    assert lines[6].endswith("remove --data")
