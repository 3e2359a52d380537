"""The explorer in a real browser: sliders move, colours agree with the symmetry, no errors."""

import threading

import pytest

from browsing import asked_by, errors_of, open_browser, until
from symgnn.explorer import MOVES, make_app, networks_for
from symgnn.explorer._explorer_figures import COLOURS


@pytest.fixture(scope="module")
def address():
    pytest.importorskip("dash", reason="needs symgnn[explore]: dash")
    serving = pytest.importorskip("werkzeug.serving", reason="needs symgnn[explore]: dash")
    server = serving.make_server("127.0.0.1", 0, make_app().server, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser(address: str):
    driver = open_browser()
    driver.get(address)
    yield driver
    driver.quit()


def rows(browser) -> dict[str, tuple[str, float]]:
    """The class and the change of each network, as the page has them."""
    script = (
        "return [...document.querySelectorAll('#reactions li')]"
        ".map(e => [e.dataset.network, e.className, e.dataset.change])"
    )
    return {name: (kind, float(change)) for name, kind, change in browser.execute_script(script)}


def press(browser, name: str, key: str, times: int) -> None:
    slider = browser.find_element("css selector", f"#move-{name.replace(' ', '-')} [role=slider]")
    for _ in range(times):
        slider.send_keys(key)


def note(browser, name: str) -> str:
    return browser.find_element("id", f"move-{name.replace(' ', '-')}-note").text


@pytest.mark.filterwarnings("ignore::ResourceWarning")
class TestPage:
    @pytest.mark.parametrize("name", ["scale", "redraw", "special conformal"])
    def test_sliders_move_and_colours_agree(self, browser, name: str) -> None:
        from selenium.webdriver.common.keys import Keys

        until(browser, lambda _: rows(browser))
        press(browser, name, Keys.ARROW_RIGHT, 6)
        until(browser, lambda _: note(browser, name) == "0.3")
        # the notes and the rows are of one callback
        shown, kind = rows(browser), MOVES[name].kind
        for network in networks_for(3):
            colour, change = shown[network.name]
            if kind in network.symmetry:
                assert (colour, change < 1e-9) == ("kept", True), network.name
            else:
                assert colour == ("changes" if change > 1e-9 else "same-here"), network.name
        assert {"kept", "changes"} <= {colour for colour, _ in shown.values()}
        script = "return document.querySelector('#lattice .js-plotly-plot').layout.annotations"
        for box in browser.execute_script(script):
            first = box["text"].split("</b>")[0].removeprefix("<b>").split(", ")[0]
            (network,) = (one for one in networks_for(3) if one.name == first)
            wanted = COLOURS["kept" if kind in network.symmetry else "changes"]
            assert box["bgcolor"] == wanted, first
        browser.find_element("id", "reset").click()
        until(browser, lambda _: note(browser, name) == "")
        assert {change for _, change in rows(browser).values()} == {0.0}

    def test_the_explanation_is_there(self, browser) -> None:
        from selenium.webdriver.common.keys import Keys

        press(browser, "scale", Keys.ARROW_RIGHT, 20)
        until(browser, lambda _: "+100 %" in browser.find_element("id", "explanation").text)
        text = browser.find_element("id", "explanation").text
        assert "dilation" in text
        assert "every angle is kept" in text
        browser.find_element("id", "reset").click()

    def test_nothing_comes_from_elsewhere_and_nothing_fails(self, browser, address: str) -> None:
        assert not errors_of(browser)
        urls = asked_by(browser)
        assert urls
        assert not [url for url in urls if not url.startswith((address, "data:", "blob:"))]
