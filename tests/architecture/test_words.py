"""Rules about words: openings of docstrings, and words for people or speech used of software."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest

from tests.architecture.project_files import project_files, syntax_tree, text_of

OPENING = re.compile(r"(?:Of|That of|Those of|The same|What|Who)\b|(?:None|Nothing):")
PRONOUN = re.compile(r"\b(?:(?:no|some|any|every)body|who" + r"ever)\b", re.IGNORECASE)
SPEECH = re.compile(r"\b(?:says|tells|knows|(?:is|are) told)\b", re.IGNORECASE)

WRITTEN = {".c", ".css", ".h", ".html", ".jinja", ".js", ".md", ".py", ".toml", ".yaml", ".yml"}
WRITTEN_NAMES = {"Dockerfile", "Makefile", "run"}
WORD_TABLES = "server/text/data/"  # words of languages

# Texts to translate and quotations: (path, words around the hit, reason).
EXCEPTIONS: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    path: str
    line: int
    text: str


def test_no_docstring_begins_with_a_banned_word() -> None:
    assert not _listed(_openings)


def test_no_text_uses_a_pronoun_for_people_of_software() -> None:
    assert not _listed(_pronouns)


def test_no_document_or_message_lets_software_speak() -> None:
    assert not _listed(_speech)


@pytest.mark.parametrize(
    "docstring",
    ["Of a row.", "That of all.", "The same.", "None: it is done.", "Nothing: wait.", "What is left.", "Who waits."],
)
def test_a_banned_opening_is_found(docstring: str) -> None:
    source = f'class A:\n    def a(self):\n        """{docstring}"""\n'
    assert _openings("a.py", source) == [Hit("a.py", 3, docstring)]


@pytest.mark.parametrize("docstring", ["Offset of a row.", "Whole text.", "None if it is done.", "Return the same."])
def test_another_opening_is_accepted(docstring: str) -> None:
    assert not _openings("a.py", f'"""{docstring}"""\n')


@pytest.mark.parametrize("path", ["a.py", "a.js", "a.c", "a.md", "Dockerfile"])
def test_a_pronoun_is_found_in_code_and_documents(path: str) -> None:
    word = "Every" + "body"
    assert _pronouns(path, f"# one\n# {word}'s\n") == [Hit(path, 2, f"# {word}'s")]
    assert not _pronouns(path, "# every body\n")


def test_data_files_are_not_read() -> None:
    for path in ("models/a.json", WORD_TABLES + "a.toml"):
        assert not _pronouns(path, "some" + "body")


def test_speech_is_found_in_messages_and_documents_and_not_in_code() -> None:
    assert _speech("server/a.py", 'raise E(f"{x} says no")\n')
    assert _speech("docs/a.md", "The server tells the client.\n")
    assert _speech("page/a.js", 'show("the server knows"); // yes\n')
    assert not _speech("server/a.py", '"""It says."""\nsays = 1  # tells\n')
    assert not _speech("tests/a.py", 'text = "she says"\n')
    assert not _speech("docs/a.md", "`says`\n```\nsays\n```\n")
    assert not _speech("page/a.js", "// says\n/* knows */\n")


def test_every_exception_is_needed() -> None:
    for path, words, reason in EXCEPTIONS:
        assert reason
        assert any(words in hit.text for find in (_openings, _pronouns, _speech) for hit in find(path, text_of(path)))


def _listed(find: Callable[[str, str], list[Hit]]) -> list[str]:
    hits = (hit for path in project_files() for hit in find(path, text_of(path)))
    return [f"{hit.path}:{hit.line}: {hit.text}" for hit in hits if not _excepted(hit)]


def _excepted(hit: Hit) -> bool:
    return any(hit.path == path and words in hit.text for path, words, _ in EXCEPTIONS)


def _openings(path: str, text: str) -> list[Hit]:
    if not path.endswith(".py"):
        return []
    docstrings = _strings(text, docstrings=True)
    return [Hit(path, line, value.splitlines()[0]) for line, value in docstrings if OPENING.match(value.lstrip())]


def _pronouns(path: str, text: str) -> list[Hit]:
    name = PurePosixPath(path)
    if path.startswith(WORD_TABLES) or (name.suffix not in WRITTEN and name.name not in WRITTEN_NAMES):
        return []
    return _lines_with(PRONOUN, path, enumerate(text.splitlines(), 1))


def _speech(path: str, text: str) -> list[Hit]:
    return _lines_with(SPEECH, path, _messages(path, text))


def _messages(path: str, text: str) -> Iterable[tuple[int, str]]:
    """Return numbered lines that users read: prose of a document, or strings of code that is not a test."""
    suffix = PurePosixPath(path).suffix
    if suffix == ".md":
        blanked = re.sub(r"^```.*?^```|`[^`\n]*`", _blank, text, flags=re.MULTILINE | re.DOTALL)
        return enumerate(blanked.splitlines(), 1)
    if suffix == ".py" and not path.startswith("tests/"):
        return _strings(text, docstrings=False)
    if suffix in {".html", ".jinja", ".js"}:
        blanked = re.sub(r"/\*.*?\*/|<!--.*?-->|(?:^|(?<=\s))//[^\n]*", _blank, text, flags=re.DOTALL | re.MULTILINE)
        return enumerate(blanked.splitlines(), 1)
    return ()


def _blank(match: re.Match[str]) -> str:
    return "\n" * match.group().count("\n")


def _strings(text: str, *, docstrings: bool) -> Iterator[tuple[int, str]]:
    """Yield line and value of the docstrings, those of attributes included, or of all other strings."""
    tree = syntax_tree(text)
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and (id(node) in alone) == docstrings:
            yield node.lineno, node.value


def _lines_with(word: re.Pattern[str], path: str, lines: Iterable[tuple[int, str]]) -> list[Hit]:
    return [Hit(path, line, text.strip()) for line, text in lines if word.search(text)]
