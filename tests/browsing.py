"""A real browser for tests of pages: Debian's chromium and its driver."""

import json
import shutil

import pytest

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--no-first-run", "--window-size=1500,1300"),
)


def open_browser():
    """A browser that notes its console and its requests; skips the test where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs symgnn[test]: selenium")
    chromium, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if chromium is None or driver is None:
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


def until(browser, what):
    """Wait until something is true."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 60, poll_frequency=0.1).until(what)


def errors_of(browser) -> list[dict]:
    """The errors in the console."""
    return [line for line in browser.get_log("browser") if line["level"] in ("SEVERE", "ERROR")]


def asked_by(browser) -> set[str]:
    """The addresses of all requests."""
    lines = [json.loads(line["message"])["message"] for line in browser.get_log("performance")]
    sent = (line for line in lines if line["method"] == "Network.requestWillBeSent")
    return {line["params"]["request"]["url"] for line in sent}
