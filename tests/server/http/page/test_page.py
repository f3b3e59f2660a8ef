import re
from collections.abc import Iterator
from pathlib import Path

import html5lib
import pytest
import tinycss2
from starlette.testclient import TestClient
from tinycss2.ast import Declaration, FunctionBlock, QualifiedRule
from tinycss2.color4 import Color, parse_color

from server.http.app import create_app
from server.http.page.routes import FOLDER, INDEX
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator
from tests.server.http.page.page_texts import texts_of

PAGES = (INDEX, "live.html")
FILES = sorted(path.name for path in FOLDER.iterdir())
SCRIPTS = [name for name in FILES if name.endswith(".js")]
SHEETS = [name for name in FILES if name.endswith(".css")]

# Text, and what it stands on somewhere.
READ_ON = [
    *[("--ink", ground) for ground in ("--paper", "--sheet", "--raised", "--haze", "--glow")],
    *[("--quiet", ground) for ground in ("--paper", "--sheet", "--raised", "--haze")],
    ("--honey", "--sheet"),
    ("--on-honey", "--honey"),
    ("--alarm", "--sheet"),
    ("--alarm", "--alarm-sheet"),
]
# What must be seen and is no text: outlines of what has the focus, arrows, bars.
SEEN_ON = [("--honey", "--paper"), ("--honey", "--sheet"), ("--honey", "--line"), ("--quiet", "--sheet")]


@pytest.fixture
def client(echo: EchoGenerator) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(), [echo])) as client:
        yield client


def _text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def test_the_page_is_at_the_root(client: TestClient) -> None:
    answer = client.get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.text == _text(INDEX)


def test_every_file_is_served_as_what_it_is(client: TestClient) -> None:
    kind = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
    for name in FILES:
        answer = client.get(f"/page/{name}")
        assert (answer.status_code, answer.content) == (200, (FOLDER / name).read_bytes()), name
        assert answer.headers["content-type"].partition(";")[0] == kind[name.rpartition(".")[2]], name


def test_the_page_for_speech_alone_may_use_the_microphone(client: TestClient) -> None:
    assert "microphone=(self)" in client.get("/live").headers["permissions-policy"]
    assert "microphone=()" in client.get("/").headers["permissions-policy"]


@pytest.mark.parametrize("path", ["/", "/live", "/page/main.js"])
def test_a_browser_runs_nothing_but_these_files(path: str, client: TestClient) -> None:
    headers = client.get(path).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_the_documentation_runs_no_script_but_its_own(client: TestClient) -> None:
    page = client.get("/docs")
    policy = dict(part.split(" ", 1) for part in page.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    scripts = re.findall(r"<script([^>]*)>([^<]*)</script>", page.text)
    assert scripts
    for attributes, content in scripts:
        assert not content
        [source] = re.findall(r'src="([^"]+)"', attributes)
        assert client.get(f"/{source}").status_code == 200
    for address in re.findall(r'href="([^"]+)"', page.text):
        assert client.get(f"/{address}").status_code == 200


@pytest.mark.parametrize("path", ["/", "/page/style.css"])
def test_a_file_that_is_known_is_not_sent_again(path: str, client: TestClient) -> None:
    first = client.get(path)
    assert first.headers["cache-control"] == "no-cache"
    for known in (first.headers["etag"], f'"other", W/{first.headers["etag"]}', "*"):
        again = client.get(path, headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
        assert "content-security-policy" in again.headers
    assert client.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.parametrize("name", ["", "none.js", "..%2Fapp.py", "%2e%2e/app.py"])
def test_nothing_else_can_be_asked_for(name: str, client: TestClient) -> None:
    answer = client.get(f"/page/{name}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_valid_html(name: str) -> None:
    parser = html5lib.HTMLParser(strict=True)
    document = parser.parse(_text(name))
    ids = [element.get("id") for element in document.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    for attribute in ("for", "aria-describedby", "aria-labelledby"):
        named = [name for element in document.iter() for name in (element.get(attribute) or "").split()]
        assert set(named) <= set(ids), attribute


def test_no_file_names_another_host() -> None:
    for name in FILES:
        code = "\n".join(line for line in _text(name).splitlines() if not line.lstrip().startswith(("*", "/*", "//")))
        code = code.replace("http://www.w3.org/2000/svg", "")  # a name, of which nothing is fetched
        assert not re.search(r"https?:|wss?:|[\"'(]//", code), name


def test_all_that_is_linked_or_imported_is_there_and_all_that_is_there_is_used() -> None:
    linked = set(re.findall(r'(?:href|src)="page/([^"]+)"', "".join(map(_text, PAGES))))
    imported = {name for script in SCRIPTS for name in re.findall(r'from "\./([^"]+)"', _text(script))}
    assert linked | imported | set(PAGES) == set(FILES)


@pytest.mark.parametrize("name", SHEETS)
def test_style_sheets_parse_and_take_their_colours_from_one_place(name: str) -> None:
    rules = tinycss2.parse_stylesheet(_text(name), skip_comments=True, skip_whitespace=True)
    assert not [rule for rule in rules if rule.type == "error"]
    if name != "colours.css":
        assert not re.search(r"#[0-9a-f]{3,8}\b(?![^{}]*\{)|rgb\(|hsl\(", _text(name))


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("colour", "ground", "least"), [*((*pair, 4.5) for pair in READ_ON), *((*pair, 3.0) for pair in SEEN_ON)]
)
def test_colours_have_the_contrast_of_wcag_aa(colour: str, ground: str, least: float, theme: int) -> None:
    palette = palettes(FOLDER / "colours.css")[theme]
    assert contrast(palette[colour], palette[ground]) >= least


def test_every_colour_that_is_used_is_declared_and_every_one_declared_is_used() -> None:
    light, dark = palettes(FOLDER / "colours.css")
    used = set(re.findall(r"var\((--[\w-]+)\)", "".join(_text(name) for name in SHEETS)))
    assert used == set(light) == set(dark)


@pytest.mark.parametrize(("root_path", "servers"), [("", None), ("/below", [{"url": "/below"}])])
def test_the_description_of_an_application_below_a_path_names_it(
    echo: EchoGenerator, root_path: str, servers: list[dict[str, str]] | None
) -> None:
    app = create_app(Settings(), [echo])
    with TestClient(app, root_path=root_path) as client:
        for path in ("/openapi.json", "/spec"):
            description = client.get(root_path + path).json()
            assert description.get("servers") == servers
            assert "/v1/translate" in description["paths"]


LANGUAGES = ("en", "de", "es", "fr")
ATTRIBUTES = {"data-label": "aria-label", "data-title": "title", "data-placeholder": "placeholder"}


def _forms(text: str | dict[str, str]) -> list[str]:
    return [text] if isinstance(text, str) else list(text.values())


ENGLISH = texts_of("en")


def test_there_are_texts_for_every_language_that_the_page_offers() -> None:
    page = (FOLDER / INDEX).read_text(encoding="utf-8")
    assert set(re.findall(r'<option value="(\w+)"', page)) == set(LANGUAGES)
    assert {path.stem.removeprefix("texts_") for path in FOLDER.glob("texts_*.js")} == set(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_text_with_its_values(language: str) -> None:
    texts = texts_of(language)
    assert list(texts) == list(ENGLISH)
    for key, text in texts.items():
        expected = {name for form in _forms(ENGLISH[key]) for name in re.findall(r"\{(\w+)\}", form)}
        for form in _forms(text):
            assert form.strip() == form != "", key
            assert set(re.findall(r"\{(\w+)\}", form)) == expected, key


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_with_a_count_have_the_plural_forms_of_the_language(language: str) -> None:
    for key, text in texts_of(language).items():
        assert isinstance(text, dict) == isinstance(ENGLISH[key], dict), key
        if isinstance(text, dict):
            assert set(text) == {"one", "other"}, key


def test_every_text_is_used_and_every_used_text_exists() -> None:
    used = set()
    for path in FOLDER.iterdir():
        if not path.name.startswith("texts_") and path.suffix in (".js", ".html"):
            used |= set(re.findall(r'"([a-z]+\.[a-zA-Z]+)"', path.read_text(encoding="utf-8")))
    used |= {"output.length", "output.repetition"}  # built from the finish reason
    named = {key for key in used if key.split(".")[0] in {each.split(".")[0] for each in ENGLISH}}
    assert named == set(ENGLISH)


def test_the_html_has_the_english_texts() -> None:
    for key, shown in _shown_texts():
        assert shown == ENGLISH[key], key


def _shown_texts() -> Iterator[tuple[str, str | None]]:
    pages = [(FOLDER / name).read_text(encoding="utf-8") for name in (INDEX, "live.html")]
    documents = [html5lib.parse(page, namespaceHTMLElements=False) for page in pages]
    for element in (element for document in documents for element in document.iter()):
        if key := element.get("data-text"):
            yield key, element.text
        for attribute, shown in ATTRIBUTES.items():
            if key := element.get(attribute):
                yield key, element.get(shown)


Palette = dict[str, str]


def palettes(sheet: Path) -> tuple[Palette, Palette]:
    """Colours by name, for light and for dark, of all `--name: light-dark(one, other)` in a style sheet."""
    light: Palette = {}
    dark: Palette = {}
    rules = tinycss2.parse_stylesheet(sheet.read_text(encoding="utf-8"), skip_comments=True, skip_whitespace=True)
    for rule in rules:
        assert isinstance(rule, QualifiedRule), rule
        for declaration in tinycss2.parse_blocks_contents(rule.content, skip_comments=True, skip_whitespace=True):
            assert isinstance(declaration, Declaration), declaration
            if declaration.name.startswith("--"):
                light[declaration.name], dark[declaration.name] = _pair(declaration)
    return light, dark


def _pair(declaration: Declaration) -> tuple[str, str]:
    [function] = [token for token in declaration.value if isinstance(token, FunctionBlock)]
    assert function.name == "light-dark", f"{declaration.name} has one colour for light and dark"
    commas = [place for place, token in enumerate(function.arguments) if token == ","]
    [comma] = commas
    one, other = function.arguments[:comma], function.arguments[comma + 1 :]
    return tinycss2.serialize(one).strip(), tinycss2.serialize(other).strip()


def contrast(one: str, other: str) -> float:
    """From 1 to 21: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(written: str) -> float:
    colour = parse_color(written)
    assert isinstance(colour, Color), written
    assert colour.alpha == 1, f"{written} shows what is behind it"
    red, green, blue = (_linear(channel) for channel in colour.to("srgb").coordinates)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)
