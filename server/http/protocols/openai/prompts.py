"""Prompts of known translation programs: the text in them, and its languages.

A prompt that matches no template is rejected: an instruction must not be translated.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import regex

from server.text.unicode_text import replace_lone_surrogates

_WEBLATE_SEPARATOR = "\n==WEBLATE_PART==\n"
_WORDS_FOR_DETECTION = ("detected language", "auto detect", "detect language", "autodetect")

# In templates: a language, and instructions of which only the length matters. Text before "<text>" and "<rest>" is
# matched once and not again, so that no prompt takes more than linear time.
_PARTS = {
    "<source>": r"(?P<source>[^.,:;\"'\n]{1,60}?)",
    "<target>": r"(?P<target>[^.,:;\"'\n]{1,60}?)",
    "<any>": r".{0,1500}?",
    "<line>": r"[^\n]{0,1000}?",
    "<text>": r")(?P<text>.*?)",
    "<rest>": r").{0,5000}",
    "<quotes>": '"""',
    "<mark>": "\U0001f524",
    "<unmarked>": "[^\U0001f524]{0,1500}",
    "<end with mark>": "[^\U0001f524]{0,1500}(?:\U0001f524[^\U0001f524]{0,200})?",
}


@dataclass(frozen=True, slots=True)
class Prompt:
    """Texts to translate, their languages, and how their translations are put together in one answer.

    None as a language: the prompt does not name it.
    """

    texts: tuple[str, ...]
    source: str | None = None
    target: str | None = None
    compose: Callable[[Sequence[str], Sequence[str]], str] | None = None


@dataclass(frozen=True, slots=True)
class _Template:
    """Patterns of the whole system message and of the whole user message of one program."""

    system: regex.Pattern[str] | None
    user: regex.Pattern[str]

    def match(self, system: str, user: str) -> Prompt | None:
        found_in_system = None if self.system is None else self.system.fullmatch(system)
        found_in_user = self.user.fullmatch(user)
        if found_in_user is None or (self.system is not None and found_in_system is None):
            return None
        values = (found_in_system.groupdict() if found_in_system else {}) | found_in_user.groupdict()
        source = values.get("source")
        if source is not None and source.strip().casefold() in _WORDS_FOR_DETECTION:
            source = None
        return _parts(values["text"], source, values["target"])


def _pattern(template: str) -> regex.Pattern[str]:
    pieces = regex.split(f"({'|'.join(map(regex.escape, _PARTS))})", template)
    return regex.compile("(?>" + "".join(_PARTS.get(piece) or regex.escape(piece) for piece in pieces), regex.DOTALL)


def _template(user: str, system: str | None = None) -> _Template:
    return _Template(None if system is None else _pattern(system), _pattern(user))


_TEMPLATES = (
    # Subtitle Edit
    _template("Translate from <source> to <target>, keep punctuation as input<line>:\n\n<text>"),
    # pot
    _template("Translate into <target>:\n<quotes>\n<text>\n<quotes>"),
    # Ebook-Translator for calibre
    _template("<text>", "<any>Translate the given content from <source> to <target> only.<rest>"),
    # LunaTranslator
    _template("<text>", "<any>translate the following <source> text into <target>.<rest>"),
    # Weblate
    _template("<text>", "<any>from language '<source>'<any>to language '<target>'<rest>"),
    # KISS Translator, one text
    _template(
        "<any>Translate the Source Text below to <target>.<any>Source Text: <text>\n\nTranslated Text:",
        "You are a professional, authentic machine translation engine.<rest>",
    ),
    # Read Frog
    _template("Treat input as plain text input and translate it into <target>,<any>Input:\n<text>"),
    # Zotero PDF Translate
    _template(
        "<any>translation from <source> to <target> of the academic text enclosed in <mark>.<unmarked><mark> "
        "<text> <mark><end with mark>"
    ),
    # deep-translator
    _template('Translate the text below into <target>.\nText: "<text>"'),
)


def find_prompt(system: str, user: str) -> Prompt | None:
    """Return the texts and languages of a known prompt, or None."""
    system, user = system.replace("\r\n", "\n").strip(), user.replace("\r\n", "\n")
    if (batch := _json_batch(system, user)) is not None:
        return batch
    for template in _TEMPLATES:
        if (prompt := template.match(system, user.strip())) is not None:
            return prompt
    return None


def _parts(text: str, source: str | None, target: str | None) -> Prompt:
    """Return the prompt for a text, which may have several parts: Weblate counts those of the answer."""
    texts = tuple(text.split(_WEBLATE_SEPARATOR))
    if len(texts) == 1:
        return Prompt(texts, source, target)
    return Prompt(texts, source, target, lambda translated, _: _WEBLATE_SEPARATOR.join(translated))


def _json_batch(system: str, user: str) -> Prompt | None:
    """Return the segments of KISS Translator, whose prompt requests an answer in JSON."""
    if "json" not in system.casefold() or not user.lstrip().startswith("{"):
        return None
    try:
        content = json.loads(user)
        target, segments = content["targetLanguage"], content["segments"]
        ids, texts = [each["id"] for each in segments], tuple(each["text"] for each in segments)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(target, str) or not all(isinstance(text, str) for text in texts):
        return None

    def compose(translated: Sequence[str], languages: Sequence[str]) -> str:
        answers = [
            {"id": id_, "text": text, "sourceLanguage": language}
            for id_, text, language in zip(ids, translated, languages, strict=True)
        ]
        return replace_lone_surrogates(json.dumps({"translations": answers}, ensure_ascii=False))

    return Prompt(tuple(map(replace_lone_surrogates, texts)), None, target, compose)
