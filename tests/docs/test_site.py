"""The site builds strictly, without the network, and has every public name and equation."""

import html
import importlib
import logging
import re
import zlib
from pathlib import Path

import pytest

from browsing import asked_by, errors_of, open_browser, until
from symgnn.explorer import MOVES, networks_for

ROOT = Path(__file__).parents[2]
MISSING = "needs symgnn[docs]: "
#: The start of an address that a page would load from elsewhere.
OUTSIDE = re.compile(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="(?:https?:)?//[^"]+"')


@pytest.fixture(scope="module")
def mkdocs():
    for name in ("material", "mkdocstrings", "griffe_sphinx", "latex2mathml", "nbconvert"):
        pytest.importorskip(name, reason=MISSING + name)
    return pytest.importorskip("mkdocs.commands.build", reason=MISSING + "mkdocs")


def built(mkdocs, folder: Path, **changes) -> list[str]:
    """The site in a folder, and the warnings with which a strict build fails."""
    from mkdocs.config import load_config

    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    listener, log = Listener(level=logging.WARNING), logging.getLogger("mkdocs")
    log.addHandler(listener)
    try:
        config = load_config(
            str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=False, **changes
        )
        config.plugins.on_startup(command="build", dirty=False)
        mkdocs.build(config)
    finally:
        log.removeHandler(listener)
    return said


@pytest.fixture(scope="module")
def site(mkdocs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        assert built(mkdocs, folder) == []
    return folder


def pages(site: Path) -> dict[str, str]:
    return {path.relative_to(site).as_posix(): path.read_text() for path in site.rglob("*.html")}


def reference() -> str:
    return "\n".join(path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
class TestSite:
    def test_every_public_name_is_in_the_reference(self, site: Path) -> None:
        inventory = zlib.decompress((site / "objects.inv").read_bytes().split(b"zlib.\n", 1)[1])
        named = {line.split(" ")[0] for line in inventory.decode().splitlines()}
        missing, rooms = [], re.findall(r"^::: (\S+)", reference(), re.M)
        for room in rooms:
            module = importlib.import_module(room)
            for name in getattr(module, "__all__", ()):
                path = f"{room}.{name}"
                if path not in {*named, *rooms} and name != "__version__":
                    missing.append(path)
        assert not missing
        packages = [path.parent.name for path in (ROOT / "src" / "symgnn").glob("*/__init__.py")]
        assert {f"symgnn.{name}" for name in packages} - {*rooms} == {"symgnn.commands"}

    def test_nothing_is_loaded_from_elsewhere(self, site: Path) -> None:
        found = {name: OUTSIDE.findall(text) for name, text in pages(site).items()}
        assert not {name: links for name, links in found.items() if links}

    def test_equations_are_mathml(self, site: Path) -> None:
        text = pages(site)["blocks.html"]
        assert text.count("<math ") >= 14
        assert 'class="arithmatex"' not in text
        assert "<mi>&</mi>" not in text
        # the equation of kappa, as TeX for those who cannot see it
        assert r"\kappa_{jik} &= \frac{s_{jik}}" in html.unescape(text)

    def test_long_signatures_have_several_lines(self, site: Path) -> None:
        text = re.sub(r"<[^>]+>", "", pages(site)["reference/symgnn.html"])
        assert "fit(\n    graphs: " in html.unescape(text)

    def test_docstrings_have_no_roles_left(self, site: Path) -> None:
        texts = {name: text for name, text in pages(site).items() if name.startswith("reference/")}
        assert len(texts) >= 10
        assert not [name for name, text in texts.items() if re.search(r":(func|class|meth):", text)]

    def test_search_finds_words_of_pages_and_docstrings(self, site: Path) -> None:
        index = (site / "search" / "search_index.js").read_text()
        assert "Hoberman" in index
        assert "reference/nn.html#symgnn.nn.build" in index

    @pytest.mark.filterwarnings("ignore::ResourceWarning")
    def test_in_a_browser(self, site: Path) -> None:
        """From the file system: recorded motions play, search finds, nothing fails."""
        browser = open_browser()
        try:
            browser.get((site / "index.html").as_uri())
            script = (
                "return [...document.querySelectorAll('.motion-networks li')]"
                ".map(e => [e.firstChild.textContent, e.className])"
            )
            until(browser, lambda _: browser.execute_script(script))
            for button in browser.find_elements("css selector", ".motion-buttons button"):
                button.click()
                name = button.text.partition(":")[0]
                shown = dict(browser.execute_script(script))
                for network in networks_for(4 if "tesseract" in button.text else 3):
                    if network.name in shown:
                        kept = MOVES[name].kind in network.symmetry
                        assert (shown[network.name] == "kept") == kept, (name, network.name)
            box = browser.find_element("css selector", "input[name=query]")
            box.click()
            box.send_keys("redrawing")
            found = ".md-search-result__item h1"
            until(browser, lambda _: browser.find_elements("css selector", found))
            assert not errors_of(browser)
            assert not [url for url in asked_by(browser) if url.startswith("http")]
        finally:
            browser.quit()

    def test_a_broken_link_and_an_unknown_symbol_are_found(
        self, mkdocs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(ROOT)
        docs = tmp_path / "docs"
        docs.mkdir()
        (docs / "index.md").write_text("[no such page](nowhere.md) $\\nosuchsymbol$")
        said = built(mkdocs, tmp_path / "site", docs_dir=str(docs), nav=["index.md"])
        assert any("nowhere.md" in line for line in said)
        assert any("nosuchsymbol" in line for line in said)
