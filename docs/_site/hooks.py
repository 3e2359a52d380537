"""Hooks of MkDocs: equations become MathML while the site is built, so no page needs a script.

`pymdownx.arithmatex` finds `$...$` and `$$...$$` and leaves them in elements of the class
"arithmatex", between `\\(` and `\\)` or `\\[` and `\\]`; these are replaced here.
"""

import html
import logging
import re

from latex2mathml.converter import convert

log = logging.getLogger("mkdocs.hooks.equations")
EQUATION = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)


def to_mathml(found: re.Match[str]) -> str:
    """The MathML of one equation, with its TeX as the alternative text."""
    tex = html.unescape(found["tex"]).strip()
    display = "block" if found["tag"] == "div" else "inline"
    try:
        drawn = convert(tex, display=display)
    except Exception as error:  # its errors have no common class
        log.warning("%s: is not an equation that latex2mathml can read (%r)", tex, error)
        return found[0]
    if unknown := re.findall(r"<m[iot]>(\\\w+|&)</m[iot]>", drawn):
        log.warning("%s: latex2mathml does not know %s", tex, ", ".join(unknown))
    return drawn.replace("<math ", f'<math alttext="{html.escape(tex)}" ', 1)


def on_page_content(content: str, **_: object) -> str:
    """Replace the equations of a page."""
    return EQUATION.sub(to_mathml, content)
