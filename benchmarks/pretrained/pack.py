"""Writes a finished run into the package: python benchmarks/pretrained/pack.py runs/NAME NAME.

Weights become safetensors; paths of the machine that trained it are left out; the model card is
written from the record and the metrics.
"""

import json
import shutil
import sys
from pathlib import Path

import yaml

from symgnn.store import write_json
from symgnn.train._checkpoint import read_checkpoint
from symgnn.train._pretrained import FOLDER, PRETRAINED
from symgnn.train._run_record import write_record
from symgnn.train._safetensors import write_safetensors

LICENCES = {
    "solids": "The graphs are generated. The weights have the licence of symgnn, MIT.",
    "qm9": "QM9 is published by Ramakrishnan, Dral, Rupp and von Lilienfeld (Scientific Data 1, 140022, 2014; "
    "doi:10.6084/m9.figshare.978904); cite it. The weights have the licence of symgnn, MIT.",
}
UNFIT = {
    "solids": "Anything but a demonstration.",
    "qm9": "Molecules with other elements than H, C, N, O and F, with charges, or larger than those of QM9 (nine heavy "
    "atoms); molecules of up to ten atoms, such as water or methane, which QM9 has few of and whose errors are far larger; "
    "SMILES and files, as it was trained on the graphs of the dataset; decisions of any weight. It was trained on a tenth of QM9 for minutes; published networks are several times "
    "more accurate.",
}


def card(name: str, record: dict, metrics: dict) -> str:
    """The model card, in Markdown."""
    task, config, counts = record["task"], record["config"], record["counts"]
    kind = name.partition("-")[0]
    rows = [
        f"| {key} | {value['mean']:.4g} | {value['baseline']:.4g} |"
        for key, value in metrics["test"].items()
        if value.get("baseline") is not None
    ]
    unit = task["units"][0] if task["kind"] == "regression" else ""
    numbers = f"In {unit} where they have a unit." if unit else ""
    return f"""# {name}

Predicts {PRETRAINED[name]}.

- **Network**: {config["model"]["block"]}, {config["model"]["layers"]} layers, {config["model"]["hidden"]} wide, \
{record["parameters"]} parameters
- **Symmetry**: {record["symmetry"]}
- **Data**: {config["data"]["name"]}, {counts["train"]} graphs to train with, {counts["validation"]} to choose the epoch by, \
{counts["test"]} to test on
- **Protocol**: `symgnn train benchmarks/pretrained/{name}.yaml`, {config["train"]["epochs"]} epochs, one initialisation, \
fixed before the run
- **Made with**: symgnn {record["environment"]["symgnn"]} ({record["environment"]["commit"]}), torch \
{record["environment"]["torch"]}

Errors on the test graphs, beside the best constant prediction. {numbers}

| | network | baseline |
|---|---:|---:|
{chr(10).join(rows)}

**Not for**: {UNFIT[kind]}

**Licence**: {LICENCES[kind]}
"""


def main(run: Path, name: str) -> None:
    """Pack one run."""
    record = json.loads((run / "run.json").read_text())
    metrics = json.loads((run / "metrics.json").read_text())
    config = yaml.safe_load((run / "config.yaml").read_text())
    for data in (config["data"], record["config"]["data"]):
        for key in ("source", "root"):
            data.pop(key, None)
    if "source" in record.get("about", {}):
        record["about"]["source"] = Path(record["about"]["source"]).name
    out = FOLDER / name
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    write_record(out, {key: value for key, value in record.items() if key != "sha256"})
    write_json(out / "metrics.json", metrics)
    (member,) = read_checkpoint(run / "seed-1" / "best.ckpt")["members"]
    write_safetensors(out / "weights.safetensors", member)
    (out / "CARD.md").write_text(card(name, record, metrics))
    print("wrote", out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
