"""A visit to the page: what a person does there, and what is to be seen."""

from collections.abc import Callable, Sequence

from selenium.webdriver import Chrome
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

PATIENCE_SECONDS = 30.0

_DROP = """
const carried = new DataTransfer();
for (const [name, content, type] of arguments[0]) carried.items.add(new File([content], name, { type }));
for (const name of ["dragenter", "dragover", "drop"]) {
  dispatchEvent(new DragEvent(name, { dataTransfer: carried, bubbles: true, cancelable: true }));
}
"""


class Visit:
    """One page in one window."""

    def __init__(self, chromium: Chrome, url: str) -> None:
        self.chromium = chromium
        self.url = url

    def open(self) -> None:
        """Load the page, and wait until it knows its languages."""
        self.chromium.get(self.url)
        self.until(lambda: self.find("source-language").is_enabled())

    def open_at(self, address: str) -> None:
        """Load the page with this text after its own address."""
        self.chromium.get("about:blank")  # a change of the fragment alone loads nothing
        self.chromium.get(self.url + address)
        self.until(lambda: self.find("source-language").is_enabled())

    def find(self, element_id: str) -> WebElement:
        """An element of the page."""
        return self.chromium.find_element(By.ID, element_id)

    def all(self, selector: str) -> list[WebElement]:
        """All elements a selector of CSS names."""
        return self.chromium.find_elements(By.CSS_SELECTOR, selector)

    def until(self, condition: Callable[[], object]) -> None:
        """Wait for something to become true."""
        WebDriverWait(self.chromium, PATIENCE_SECONDS, 0.05).until(lambda _: condition())

    def type(self, text: str) -> None:
        """Write into the left pane."""
        self.find("source").send_keys(text)

    def paste(self, text: str) -> None:
        """Put a whole text into the left pane at once."""
        self.chromium.execute_script(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))",
            self.find("source"),
            text,
        )

    @property
    def translation(self) -> str:
        """Return the text of the right pane."""
        return str(self.find("output").get_property("textContent"))

    @property
    def is_settled(self) -> bool:
        """Whether the translation is whole."""
        return self.find("copy").is_enabled()

    def translated(self, text: str) -> str:
        """The translation of a text that is typed."""
        self.type(text)
        self.until(lambda: self.is_settled)
        return self.translation

    def switch_interface(self, tag: str) -> None:
        """Choose the language of the page."""
        Select(self.find("interface")).select_by_value(tag)

    def before_each_page(self, script: str) -> str:
        """Run a script before those of each page from now on. Return its identifier."""
        command = "Page.addScriptToEvaluateOnNewDocument"
        return str(self.chromium.execute_cdp_cmd(command, {"source": script})["identifier"])

    def forget_script(self, identifier: str) -> None:
        """Run a script no more."""
        self.chromium.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": identifier})

    @property
    def note(self) -> str:
        """Return the note below the translation."""
        return self.find("note").text

    @property
    def announced(self) -> str:
        """Return the text that a screen reader reads."""
        return str(self.find("announcement").get_property("textContent"))

    def choose(self, source: str, target: str) -> None:
        """Choose two languages by their names."""
        for element_id, name in (("source-language", source), ("target-language", target)):
            self.find(element_id).click()
            next(option for option in self.options if option.text.split("\n")[0] == name).click()

    @property
    def options(self) -> list[WebElement]:
        """Return the languages of the open list."""
        return self.all("[role=option]")

    def chosen(self, element_id: str) -> str:
        """The tag of the language that is chosen."""
        return str(self.find(element_id).get_property("value"))

    def word(self, *texts: str) -> WebElement:
        """Return the first of these words that the translation has: models choose different synonyms."""
        words = {word.text: word for word in self.all("#output .word")}
        return next(words[text] for text in texts if text in words)

    def point_at(self, element: WebElement) -> None:
        """Move the pointer there."""
        ActionChains(self.chromium).move_to_element(element).perform()

    def press(self, *keys: str) -> None:
        """Press keys, one after the other, wherever the focus is."""
        ActionChains(self.chromium).send_keys(*keys).perform()

    @property
    def focused(self) -> str:
        """The id, else the text, of what has the focus."""
        element = self.chromium.switch_to.active_element
        return element.get_attribute("id") or element.text

    @property
    def lit(self) -> list[str]:
        """Words of the source that are lit."""
        return [str(mark.get_property("textContent")) for mark in self.all("#mirror .glow")]

    def drop(self, *files: Sequence[str]) -> None:
        """Drop files on the page, each with its name, content and type."""
        self.chromium.execute_script(_DROP, files)

    def colour(self, element_id: str, name: str) -> str:
        """A colour as it is painted."""
        return str(self.find(element_id).value_of_css_property(name))

    def evaluate(self, expression: str) -> object:
        """Return the value of an expression in JavaScript."""
        return self.chromium.execute_script(f"return {expression}")

    def number(self, expression: str) -> float:
        """Return the value of an expression in JavaScript that is a number."""
        value = self.evaluate(expression)
        assert isinstance(value, int | float)
        return value

    def complaints(self) -> list[str]:
        """Errors of the console since it was read last; refused addresses of the page's own server are none."""
        entries = self.chromium.get_log("browser")
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE" and entry["source"] != "network"]
