"""Training without the messages of Lightning: its banner, adverts and hints on loaders."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

#: Loggers of Lightning; messages below a warning are not shown.
LOGGERS = ("lightning.pytorch", "lightning.fabric", "lightning")
#: Warnings about choices that are made on purpose: regular expressions of their text.
ON_PURPOSE = (
    ".*many workers",
    ".*LeafSpec.* is deprecated",
    ".*smaller than the logging interval",
)


@contextmanager
def quiet() -> Iterator[None]:
    """Lightning says nothing but warnings; its loggers are as they were afterwards."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(max(logger.level, logging.WARNING))
    try:
        with warnings.catch_warnings():
            for text in ON_PURPOSE:
                warnings.filterwarnings("ignore", text)
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
