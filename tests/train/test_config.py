"""A run's file: what is right is resolved, what is wrong gets one line before anything starts."""

from pathlib import Path

import pytest
import yaml

from symgnn.nn.architectures import ARCHITECTURES
from symgnn.nn.build import build
from symgnn.nn.peers import PEERS
from symgnn.train import _run_data as run_data
from symgnn.train._config import Config, read_config, resolve

GOOD = {"data": {"name": "polytopes-3d"}, "model": {"block": "dgn"}}


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return path


def test_defaults_are_written_out_and_read_again(tmp_path: Path) -> None:
    config = resolve(GOOD, ["model.hidden=64", "train.learning_rate=5e-4", "train.patience=7"])
    assert {"block": "dgn", "hidden": 64, "mlp_hidden": 128}.items() <= config.model.items()
    assert {"layers": 2, "aggregation": "sum", "graph_state": True}.items() <= config.model.items()
    assert config.train.learning_rate == 5e-4
    assert config.train.patience == 7
    assert read_config(written(tmp_path, config.to_yaml())) == config
    assert read_config(tmp_path) == config  # the directory of a run
    assert yaml.safe_load(config.to_yaml())["train"]["epochs"] == 100


@pytest.mark.parametrize("block", [*ARCHITECTURES, *PEERS])
def test_with_its_defaults_written_out_it_is_the_same_model(block: str) -> None:
    options = resolve({**GOOD, "model": {"block": block}}).model
    assert resolve({**GOOD, "model": options}).model == options
    one = build(block, dimension=3)
    options.pop("averages", None)  # a word for what only the data tell
    other = build(dimension=3, architecture=options.pop("block"), **options)
    assert (options["layers"], repr(one)) == (one.layers, repr(other))
    sizes = [{n: p.shape for n, p in m.named_parameters()} for m in (one, other)]
    assert sizes[0] == sizes[1]


def test_changes_go_over_the_file_and_into_it(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "data: {name: polytopes-3d}\n"
        "model: {block: dgn, aggregation: {pool: sum}}\n"
        "train: {epochs: 3, learning_rate: 1e-2, precision: 64, clip: none}\n",
    )
    config = read_config(path, ["model.aggregation.e->v=max", "train.epochs=5"])
    assert config.model["aggregation"] == {"pool": "sum", "e->v": "max"}
    assert (config.train.epochs, config.train.learning_rate) == (5, 0.01)
    assert (config.train.precision, config.train.clip) == ("64", None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("model.hiden=3", "model.hiden: is not known; did you mean 'hidden'?"),
        ("model.hidden=x", "model.hidden: is 'x'; give a whole number of at least 1"),
        ("model.block=dgm", "model.block: 'dgm' is not known; did you mean 'dgn'?"),
        ("model.velocity=true", "model.velocity: is not known"),  # EGNN's, not DGN's
        ("model.outputs=3", "model.outputs: is inferred from the data; remove it"),
        ("model.aggregation=summ", "model.aggregation: 'summ' is not known; did you mean 'sum'?"),
        ("model.scaling=2", "model.scaling: DGN does not scale its coordinates"),
        ("train.epoch=3", "train.epoch: is not known; did you mean 'epochs'?"),
        ("train.epochs=3.5", "train.epochs: is 3.5; give a whole number"),
        ("train.epochs=true", "train.epochs: is True; give a whole number"),
        ("train.epochs=0", "train.epochs: is 0; give a whole number of at least 1"),
        ("train.learning_rate=fast", "train.learning_rate: is 'fast'; give a number"),
        ("train.learning_rate=-1", "train.learning_rate: is -1.0; give a positive number"),
        ("train.learning_rate=.nan", "train.learning_rate: is nan; give a positive number"),
        (
            "train.schedule=cosin",
            "train.schedule: is 'cosin'; did you mean 'cosine'? Choose from none, plateau, cosine",
        ),
        ("train.drop_last=1", "train.drop_last: is 1; give true or false"),
        ("train.plateau_factor=2", "train.plateau_factor: is 2.0; give a number between 0 and 1"),
        ("data.copys=3", "data.copys: is not known; did you mean 'copies'?"),
        ("data.path=folder", "data: give either name (of a dataset) or path"),
        ("trian.epochs=3", "trian: is not known; did you mean 'train'?"),
        ("epochs=3", "epochs=3: give changes as section.key=value"),
        ("train.epochs", "train.epochs: give changes as section.key=value"),
        ("train.epochs=[", "train.epochs: is '[', which is not YAML"),
    ],
)
def test_wrong_values_get_one_line(change: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        resolve(GOOD, [change])
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data: {name: polytopes-3d", "line 1: is not YAML"),
        ("data: {name: a, name: b}", "'name' is given twice"),
        ("- a\n- b", "give the sections data, model, train"),
        ("data: nbody", "data: is 'nbody'; give keys and values"),
        ("data: {name: nbody}", "model: is missing; give this section"),
        ("data: {name: nbody}\nmodel: {hidden: 3}", "model.block: is None; give a name"),
        ("date: {name: nbody}", "date: is not known; did you mean 'data'?"),
    ],
)
def test_wrong_files_get_one_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        read_config(written(tmp_path, text))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"path": "nowhere"}, "data.path: there is no nowhere"),
        ({"path": "."}, "data.path: the folder . has no files"),
        ({"path": "a.csv", "targets": "b.csv"}, "data.targets: there is no file b.csv"),
        ({"path": "a.csv", "edges": "bond"}, "data.edges: 'bond' is not known"),
        ({"path": "a.csv"}, "data.columns: is missing"),
        ({"path": "a.csv", "columns": ["n"]}, "data.columns: "),
        ({"path": "a.csv", "columns": ["m"], "fractions": [2, 0, 0]}, "data.fractions: "),
        ({"name": "nbody", "limit": -1}, "data.limit: "),
        ({"name": "nbody", "seed": "x"}, "data.seed: "),
        ({"name": "qm9", "source": "nowhere"}, "data: nowhere: is not there"),
    ],
)
def test_errors_of_the_data_name_their_key(
    data: dict, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if data.get("path") == "a.csv":
        (tmp_path / "a.csv").write_text("x,y,m\n0,0,1\n1,0,2\n0,1,3\n")
    config = resolve({**GOOD, "data": data})
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        run_data.load(config.data)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_wrong_option_of_files_is_known_before_they_are_read() -> None:
    with pytest.raises(ValueError, match=r"data\.colums: is not known; did you mean 'columns'?"):
        resolve({**GOOD, "data": {"path": "nowhere", "colums": "m"}})


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot read"):
        read_config(tmp_path / "nothing.yaml")
    (tmp_path / "picture.yaml").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(ValueError, match="it is not a text file"):
        read_config(tmp_path / "picture.yaml")


def test_every_architecture_can_be_named() -> None:
    from symgnn.nn import ARCHITECTURES, PEERS

    for block in (*ARCHITECTURES, *PEERS):
        assert isinstance(resolve({**GOOD, "model": {"block": block}}), Config)


def test_what_is_trained_together() -> None:
    def groups(*changes: str) -> list:
        return resolve(GOOD, ["train.seeds=3", "train.seed=5", *changes]).train.group_names

    assert groups() == ["seeds-5-7"]
    alone = ["seed-5", "seed-6", "seed-7"]
    assert groups("train.together=false") == alone
    assert groups("train.schedule=plateau") == alone
    assert groups("train.compile=true") == alone
