"""The recorded motions of the start page are what the code gives."""

import importlib.util
import json
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
spec = importlib.util.spec_from_file_location("make_recording", DOCS / "make_recording.py")
recording = importlib.util.module_from_spec(spec)
spec.loader.exec_module(recording)


@pytest.mark.usefixtures("one_thread")
def test_the_recording_is_what_the_code_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last frame of each motion, and the verdicts of every frame."""
    text = recording.FILE.read_text().removeprefix(recording.START).rstrip(";\n")
    stored = json.loads(text)
    assert stored["networks"] == recording.NETWORKS
    monkeypatch.setattr(recording, "FRAMES", 1)
    for known, motion in zip(stored["motions"], recording.MOTIONS, strict=True):
        now = recording.record(*motion)
        assert (now["name"], now["edges"], now["keeps"]) == tuple(
            known[key] for key in ("name", "edges", "keeps")
        )
        for frame in known["frames"]:
            for keeps, change in zip(known["keeps"], frame["changes"], strict=True):
                assert change < 1e-9 or not keeps, known["name"]
        far = [one["frames"][-1]["points"] for one in (known, now)]
        assert all(
            abs(a - b) < 2e-3
            for row, other in zip(*far, strict=True)
            for a, b in zip(row, other, strict=True)
        )
