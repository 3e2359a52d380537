"""An extension of griffe: the docstrings of symgnn as the site shows them.

- `Example:` with a doctest is the section that griffe calls `Examples`.
- Roles such as ":func:`symgnn.fit`" become links to public names, and code where there is none.
- A public name without a docstring is a warning, with which a strict build fails.
"""

import logging
import re

import griffe

log = logging.getLogger("mkdocs.plugins.griffe.symgnn")
ROLE = re.compile(r":(?:func|class|meth|mod|attr|data):`~?(?P<name>[\w.]+)`")
#: The packages whose `__all__` is the public face.
ROOMS = (
    *("geometry", "graphs", "nn", "data", "train", "audit", "report"),
    *("experiments", "bench", "explorer", "discovery"),
)
SKIPPED = {"__version__"}


class Docstrings(griffe.Extension):
    """See the module."""

    def __init__(self) -> None:
        self.public: dict[str, str] = {}

    def on_package(self, *, pkg: griffe.Module, **_: object) -> None:
        """Go through the package once it is loaded."""
        if pkg.path != "symgnn":
            return
        self.public = dict(public_names(pkg))
        self.revise(pkg)
        for room in ROOMS:
            show_exports(pkg[room])
        for path in sorted(set(self.public.values())):
            if not documented(pkg, path):
                log.warning("%s: is public and has no docstring", path)

    def revise(self, found: griffe.Object) -> None:
        """Revise the docstrings of an object and of its members."""
        if found.docstring is not None:
            text = re.sub(r"^(\s*)Example:$", r"\1Examples:", found.docstring.value, flags=re.M)
            found.docstring.value = ROLE.sub(self.link, text)
        for member in found.members.values():
            if not member.is_alias:
                self.revise(member)

    def link(self, role: re.Match[str]) -> str:
        """A link to a public name, or code."""
        name = role["name"]
        first, _, rest = name.removeprefix("symgnn.").rpartition(".")[2].partition(".")
        for known in (name, first):
            if (path := self.public.get(known)) is not None:
                return f"[`{name}`][{path}{'.' + rest if rest else ''}]"
        return f"`{name}`"


def show_exports(room: griffe.Module) -> None:
    """Let `nn.build` be the function, as `__init__` says, not the module that it is in."""
    for name in exported(room):
        found = room.members[name]
        if not found.is_alias and found.is_module and name in found.members:
            room.set_member(name, griffe.Alias(name, found.members[name], parent=room))


def public_names(pkg: griffe.Module) -> list[tuple[str, str]]:
    """Every public name, alone and with its path, and the path under which it is documented."""
    found = []
    for room in (pkg, *(pkg[name] for name in ROOMS)):
        for name in exported(room):
            if name not in SKIPPED and f"{room.path}.{name}" not in {f"symgnn.{r}" for r in ROOMS}:
                path = f"{room.path}.{name}"
                found += [(name, path), (path, path)]
    return found


def exported(room: griffe.Module) -> list[str]:
    """The names of `__all__`; without one, those that are defined in it and are not private."""
    if room.exports is not None:
        return [str(name) for name in room.exports]
    own = (m for m in room.members.values() if not m.is_alias and not m.is_module)
    return [member.name for member in own if not member.name.startswith("_")]


def documented(pkg: griffe.Module, path: str) -> bool:
    """Whether a name has a docstring."""
    found = pkg[path.removeprefix("symgnn.")]
    while found.is_alias:
        found = found.final_target
    return found.has_docstring
