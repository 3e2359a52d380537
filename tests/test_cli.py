import io
import logging
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from rich.console import Console

import symgnn
from symgnn import symmetry_demo
from symgnn.cli import main, make_parser
from symgnn.commands import COMMANDS
from symgnn.train._devices import quiet
from trainings import SMALL


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out.strip() == f"symgnn {symgnn.__version__}"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


# ---------------------------------------------------------------- words


@pytest.mark.parametrize("arguments", [[], ["data"]])
def test_alone_it_prints_its_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(f"usage: {' '.join(['symgnn', *arguments])}")
    assert not printed.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("trian", "symgnn: 'trian' is not a known command; did you mean 'train'?"),
        ("data lst", "symgnn data: 'lst' is not a known action; did you mean 'list'?"),
        ("evaluate run --split tset", "symgnn evaluate: --split: is 'tset'; did you mean 'test'?"),
        ("train c.yaml --sedes 3", "symgnn train: --sedes is not an option; did you mean --seeds?"),
        ("train c.yaml a=b --sedes=3", "symgnn train: --sedes=3 is not an option; did you mean "),
        ("--hepl", "symgnn: --hepl is not an option; did you mean --help?"),
        (
            "xyzzy",
            "symgnn: 'xyzzy' is not a known command; choose from demo, audit, discover, data, ",
        ),
        ("demo now", "symgnn demo: now is not expected; see symgnn demo --help"),
        ("demo --fast", "symgnn demo: --fast is not an option; see symgnn demo --help"),
        ("train", "symgnn train: the following arguments are required: config; see symgnn train "),
        (
            "bench scael",
            "symgnn: bench: 'scael' is not known; did you mean 'scale'? Choose from angles, ",
        ),
        (
            "reproduce polytope-3d",
            "symgnn: reproduce: 'polytope-3d' is not known; did you mean 'polytopes-3d'?",
        ),
        ("data get mnsit", "symgnn: name: 'mnsit' is not a dataset; did you mean 'mnist'?"),
    ],
)
def test_wrong_words_are_one_line_with_the_nearest(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(words.split())
    except SystemExit as exit_:
        code = exit_.code
    printed = capsys.readouterr()
    assert code == 2
    assert printed.err.startswith(message)
    assert printed.err.count("\n") == 1
    assert not printed.out


def test_changes_may_stand_behind_options() -> None:
    """Of one call, not of the next."""
    for _ in range(2):
        options, rest = make_parser().parse_known_args(["train", "c.yaml", "a=1", "--seeds", "2"])
        assert (options.changes, rest) == (["a=1"], [])


# ---------------------------------------------------------------- what is imported

HEAVY = (
    "torch",
    "torch_geometric",
    "numpy",
    "scipy",
    "lightning_fabric",
    "rich",
    "networkx",
    "yaml",
)


@pytest.mark.parametrize("command", ["", *(each.__name__.split(".")[-1] for each in COMMANDS)])
def test_help_imports_nothing_heavy(command: str) -> None:
    code = f"""
import sys
from symgnn.cli import main
try:
    main({[*command.split(), "--help"]})
except SystemExit as exit_:
    assert exit_.code == 0
sys.stderr.write(" ".join(name for name in {HEAVY} if name in sys.modules))
"""
    done = run("-c", code)
    assert done.stdout.startswith(f"usage: symgnn {command}".rstrip())
    assert (done.returncode, done.stderr) == (0, "")


def test_subpackages_are_imported_when_they_are_used() -> None:
    code = """
import sys
import symgnn
assert "torch" not in sys.modules
assert {"nn", "data", "audit", "train", "load", "__version__"} <= set(dir(symgnn))
assert not hasattr(symgnn, "nnn")
assert "torch" not in sys.modules
assert symgnn.nn.build("dgn", dimension=3) is not None
from symgnn import data, geometry, nn, graphs
assert symgnn.nn is nn and symgnn.graphs.knn_graph is graphs.knn_graph
from symgnn import *
assert load is symgnn.load
"""
    done = run("-c", code)
    assert done.returncode == 0, done.stderr


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="module 'symgnn' has no attribute 'nnn'"):
        symgnn.nnn  # noqa: B018


# ---------------------------------------------------------------- what is printed


def test_training_prints_nothing_of_fabric(tmp_path: Path) -> None:
    """No banner, tip or warning of a dependency: the lines are those of symgnn."""
    config = tmp_path / "c.yaml"
    config.write_text(yaml.safe_dump({**SMALL, "train": {**SMALL["train"], "epochs": 2}}))
    done = run("-m", "symgnn", "train", str(config), "--out", str(tmp_path / "run"))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("DGN(")
    assert [line for line in lines if line.startswith(("epoch ", "report:"))]
    for word in ("Lightning", "Trainer", "GPU", "TPU", "Tip"):
        assert word not in done.stdout


def test_fabric_speaks_again_afterwards() -> None:
    logger = logging.getLogger("lightning_fabric")
    before = logger.level
    with quiet():
        assert not logger.isEnabledFor(logging.INFO)
    assert logger.level == before


def test_warnings_are_lines_of_the_command() -> None:
    """Those of symgnn; those of dependencies are not shown, unless Python is asked for them."""
    code = """
import warnings
from symgnn.warning_lines import warnings_as_lines
warnings_as_lines()
def warn(module):
    warnings.warn_explicit(f"of {module}\\nhere", UserWarning, "a.py", 1, module)
for module in ("lightning_fabric.fabric", "torch", "symgnn.data.files", "models", "torchy"):
    warn(module)
"""
    shown = run("-c", code).stderr.splitlines()
    assert shown == [
        f"symgnn: warning: of {name} here" for name in ("symgnn.data.files", "models", "torchy")
    ]
    assert run("-W", "default", "-c", code).stderr.count("UserWarning") == 5


# ---------------------------------------------------------------- demo


def test_demo_agrees_with_the_derivation() -> None:
    console = Console(record=True, width=80, file=io.StringIO())
    assert symmetry_demo.run(console)
    text = console.export_text()
    assert "CGN: invariant to Moebius maps, torsions, permutations" in text
    assert "…" not in text  # nothing is cut off in a terminal of 80 columns


def test_demo_notices_a_wrong_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """A specification that promises too much is found out."""
    wrong = symgnn.nn.GN.replace(
        inputs=[symgnn.nn.Measure("x", "node", symmetry=symgnn.geometry.EUCLIDEAN, width=None)]
    )
    monkeypatch.setattr(symmetry_demo, "BLOCKS", {"gn": wrong})
    monkeypatch.setattr(symmetry_demo, "build", lambda name, **o: symgnn.nn.build(wrong, **o))
    assert not symmetry_demo.run(Console(quiet=True))


def test_tables_need_no_extra() -> None:
    """`make run` installs no more than the extra `plot`."""
    code = """
import sys
for name in ("tensorboard", "rdkit", "ase", "trimesh", "skimage", "fast_tsp"):
    sys.modules[name] = None
import symgnn, symgnn.audit
from symgnn.cli import main
sys.exit(main(["reproduce", "--list"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "polytopes-3d" in done.stdout
