"""The devices of a training, by Lightning Fabric."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from lightning_fabric import Fabric

from symgnn.train._settings import Training

PRECISION = {"32": "32-true", "64": "32-true", "16": "16-mixed", "bf16": "bf16-mixed"}
#: Loggers of Fabric; messages below a warning are not shown.
LOGGERS = ("lightning_fabric", "lightning.fabric", "lightning")


def launch(settings: Training) -> Fabric:
    """The devices that `settings` names; starts the other processes, if there are several.

    Under `torchrun` the processes are there already.
    """
    devices, nodes = settings.devices, 1
    if "TORCHELASTIC_RUN_ID" in os.environ:
        devices = int(os.environ["LOCAL_WORLD_SIZE"])
        nodes = int(os.environ["WORLD_SIZE"]) // devices
    try:
        with quiet():
            fabric = Fabric(
                accelerator=settings.accelerator,
                devices=devices,
                num_nodes=nodes,
                strategy="ddp" if devices * nodes > 1 else "auto",
                precision=PRECISION[settings.precision],  # type: ignore[arg-type]
            )
            fabric.launch()
    except (ImportError, ValueError, RuntimeError) as error:
        said = " ".join(str(error).split())
        raise ValueError(f"train.accelerator: is {settings.accelerator!r}; {said}") from None
    return fabric


@contextmanager
def quiet() -> Iterator[None]:
    """Fabric says nothing but warnings; its loggers are as they were afterwards."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(max(logger.level, logging.WARNING))
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*LeafSpec.* is deprecated")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
