"""A Chromium without a window, and what a person does on the page, in words."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

# Nothing of Chromium's own goes to any network.
_FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-default-apps", "--disable-extensions", "--lang=en-US", "--force-color-profile=srgb"),
)


def programs() -> tuple[str, str] | None:
    """Where Chromium and its driver are, if both are here."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    return None if browser is None or driver is None else (browser, driver)


@contextmanager
def started(browser: str, driver: str) -> Iterator[webdriver.Chrome]:
    """A fresh profile, which goes with the browser."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = Options()
        options.binary_location = browser
        for flag in (*_FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        # A driver that is named is not looked for, and so none is downloaded.
        chromium = webdriver.Chrome(options, Service(driver))
        try:
            yield chromium
        finally:
            chromium.quit()
