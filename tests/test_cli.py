import io
import subprocess
import sys

import pytest
from rich.console import Console

import symgnn
from symgnn import demo
from symgnn.cli import main


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out.strip() == f"symgnn {symgnn.__version__}"


@pytest.mark.parametrize("arguments", [[], ["dmeo"], ["demo", "--fast"]])
def test_wrong_calls_exit_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_demo_agrees_with_the_derivation() -> None:
    console = Console(record=True, width=80, file=io.StringIO())
    assert demo.run(console)
    text = console.export_text()
    assert "CGN: invariant to Moebius maps, torsions, permutations" in text
    assert "…" not in text  # nothing is cut off in a terminal of 80 columns


def test_demo_notices_a_wrong_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """A specification that promises too much is found out."""
    wrong = symgnn.nn.GN.replace(
        inputs=[symgnn.nn.Measure("x", "node", symmetry=symgnn.geometry.EUCLIDEAN, width=None)]
    )
    monkeypatch.setattr(demo, "ARCHITECTURES", {"gn": wrong})
    monkeypatch.setattr(demo, "build", lambda name, **o: symgnn.nn.build(wrong, **o))
    assert not demo.run(Console(quiet=True))


def test_tables_need_no_extra() -> None:
    """`make run` installs no more than the extra `plot`."""
    code = """
import sys
for name in ("lightning", "tensorboard", "rdkit", "ase", "trimesh", "skimage", "fast_tsp"):
    sys.modules[name] = None
import symgnn, symgnn.audit
from symgnn.cli import main
sys.exit(main(["reproduce", "--list"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "polytopes-3d" in done.stdout
