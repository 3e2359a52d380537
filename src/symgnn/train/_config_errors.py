"""Prefixes errors with the section of the configuration that caused them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager


@contextmanager
def in_section(section: str, keys: Collection[str], **called: str) -> Iterator[None]:
    """Let errors name the section: `section.key: ...`, or `section: ...` if they name no key.

    With `field="key"`, what an error calls `field` is the key of that name.
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        text = str(error)
        for field, key in called.items():
            text = re.sub(rf"^{field}:", f"{key}:", text)
        named = re.match(r"(\w+)(\.(?:by|column|validation))?(\[[^]]*\])?:", text)
        if named and named[1] == section:
            raise ValueError(text) from None
        mark = "." if named and named[1] in keys else ": "
        raise ValueError(f"{section}{mark}{text}") from None
