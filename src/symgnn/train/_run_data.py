"""The section `data` of a run: its graphs and their task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import symgnn.data
from symgnn.data._registry import dataset
from symgnn.data._task import Splits
from symgnn.data.files import _folder_loading as loading
from symgnn.train._config_errors import in_section

#: Keys of the section that every dataset takes; `drop` names values that no model shall read.
COMMON = ("name", "drop")


def known_keys(options: Mapping[str, Any]) -> list[str]:
    """The keys that the section `data` may have, with this `name` or `path`."""
    if "name" not in options:
        return [*loading.OPTIONS, "drop"]
    with in_section("data", COMMON):
        return [*dataset(str(options["name"])).options, *COMMON]


def load_folds(options: Mapping[str, Any]) -> list[Splits]:
    """The graphs of each fold of the section `data`, whose files are read once."""
    given = {key: value for key, value in options.items() if key not in (*COMMON, "fold")}
    with in_section("data", known_keys(options)):
        return loading.load_folds(**given)


def load(options: Mapping[str, Any]) -> Splits:
    """The graphs of the section `data`: of a dataset by its `name`, or of the files at `path`."""
    given = {key: value for key, value in options.items() if key not in COMMON}
    with in_section("data", known_keys(options)):
        if "name" in options:
            return symgnn.data.load(options["name"], **given)
        return symgnn.data.load_files(**given)
