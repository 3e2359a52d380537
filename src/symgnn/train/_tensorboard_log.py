"""The numbers of each validation for TensorBoard, where it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any


class TensorBoardLog:
    """Writes `tensorboard/` of a directory; does nothing without the package tensorboard."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "tensorboard"
        self.writer: Any = None

    def add(self, rows: list[dict[str, float]]) -> None:
        """Add the rows of a log that belong to one epoch, one for each seed."""
        if find_spec("tensorboard") is None:
            return
        epoch = int(rows[0]["epoch"])
        if self.writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self.writer = SummaryWriter(str(self.directory), purge_step=epoch)
        for row in rows:
            of_seed = "" if len(rows) == 1 else f"/seed {int(row['seed'])}"
            for name, value in row.items():
                if name not in ("epoch", "seed"):
                    self.writer.add_scalar(f"{name}{of_seed}", value, epoch)
        self.writer.flush()
