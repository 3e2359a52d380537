"""An extension of griffe: the docstrings of symgnn as the site shows them.

- `Example:` with a doctest is the section that griffe calls `Examples`.
- Roles such as ":func:`symgnn.fit`" become links to public names, and code where there is none.
- The first paragraph is one line, as summaries show the first line.
- A public name without a docstring is a warning, with which a strict build fails.
"""

import logging
import re

import griffe

log = logging.getLogger("mkdocs.plugins.griffe.symgnn")
ROLE = re.compile(r":(?:func|class|meth|mod|attr|data):`~?(?P<name>[\w.]+)`")
#: Packages without a public face of their own: the reference has no page of them.
HIDDEN = {"commands"}
#: A line that does not go on with the paragraph above it.
OWN_LINE = re.compile(r"\s|[-*>|#]|\d+\. |[A-Z]\w+:$")
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
        for room in rooms(pkg):
            show_exports(room)
        for path in sorted(set(self.public.values())):
            for bare in undocumented(pkg, path):
                log.warning("%s: is public and has no docstring", bare)

    def revise(self, found: griffe.Object) -> None:
        """Revise the docstrings of an object and of its members."""
        if found.docstring is not None:
            text = re.sub(r"^(\s*)Example:$", r"\1Examples:", found.docstring.value, flags=re.M)
            found.docstring.value = in_one_line(ROLE.sub(self.link, text))
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


def rooms(pkg: griffe.Module) -> list[griffe.Module]:
    """The packages whose `__all__` is the public face."""
    found = (m for m in pkg.members.values() if not m.is_alias and m.is_subpackage)
    return [room for room in found if room.name not in HIDDEN]


def in_one_line(text: str) -> str:
    """A docstring whose first paragraph is one line; lists and sections stay as they are."""
    first, *rest = text.split("\n\n", 1)
    lines = first.strip().split("\n")
    if not any(OWN_LINE.match(line) for line in lines[1:]):
        first = " ".join(lines)
    return "\n\n".join([first, *rest])


def show_exports(room: griffe.Module) -> None:
    """Let `nn.build` be the function, as `__init__` says, not the module that it is in."""
    for name in exported(room):
        found = room.members[name]
        if not found.is_alias and found.is_module and name in found.members:
            room.set_member(name, griffe.Alias(name, found.members[name], parent=room))


def public_names(pkg: griffe.Module) -> list[tuple[str, str]]:
    """Every public name, alone and with its path, and the path under which it is documented."""
    found = []
    faces = rooms(pkg)
    for room in (pkg, *faces):
        for name in exported(room):
            path = f"{room.path}.{name}"
            if name not in SKIPPED and path not in {face.path for face in faces}:
                found += [(name, path), (path, path)]
    return found


def exported(room: griffe.Module) -> list[str]:
    """The names of `__all__`; without one, those that are defined in it and are not private."""
    if room.exports is not None:
        return [str(name) for name in room.exports]
    own = (m for m in room.members.values() if not m.is_alias and not m.is_module)
    return [member.name for member in own if not member.name.startswith("_")]


def undocumented(pkg: griffe.Module, path: str) -> list[str]:
    """The name, if it has no docstring, and the methods and properties of a class without one."""
    found = pkg[path.removeprefix("symgnn.")]
    while found.is_alias:
        found = found.final_target
    bare = [] if found.has_docstring else [path]
    if found.is_class:
        own = (m for m in found.members.values() if not m.is_alias and not m.name.startswith("_"))
        called = (m for m in own if m.is_function or "property" in m.labels)
        bare += [f"{path}.{member.name}" for member in called if not member.has_docstring]
    return bare
