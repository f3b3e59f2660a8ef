"""Detection of placeholders in text, and their substitutes."""

import pytest
import regex

from server.text.protection.substitutes import MAX_SUBSTITUTES, choose_substitutes, find_substitutes
from server.text.readers import placeholders
from server.text.readers.placeholders import Kind, find_placeholders
from server.text.readers.plain_text import may_be_special
from server.text.readers.unknown_characters import UnknownCharacters

UNKNOWN = UnknownCharacters(map(chr, range(0x250)))


def _found(text: str) -> list[str]:
    return [text[found.start : found.end] for found in find_placeholders(text, UNKNOWN)]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Use %1$s, %d%% or %(name)s and %.2f; 100% of %@.", ["%1$s", "%d", "%%", "%(name)s", "%.2f", "100%", "%@"]),
        ("{0} {name} {{ var }} ${VAR} $VAR %PATH%", ["{0}", "{name}", "{{ var }}", "${VAR}", "$VAR", "%PATH%"]),
        ("{n, plural, one {# file} other {# files}}!", ["{n, plural, one {# file} other {# files}}"]),
        (
            "See https://a.b/c_(d)?e=f#g, www.x.org. (http://y.z/)",
            ["https://a.b/c_(d)?e=f#g", "www.x.org", "http://y.z/"],
        ),
        (
            "Is it https://a.org/wiki/A_(b)? (So says www.a.org/b_(c), or https://a.org/{id}.) [x](http://a.b),(http://c.d)",
            ["https://a.org/wiki/A_(b)", "www.a.org/b_(c)", "https://a.org/{id}", "http://a.b", "http://c.d"],
        ),
        (
            "%{name} #{name} @{name} %name%, %d%% %ld%%",
            ["%{name}", "#{name}", "@{name}", "%name%", "%d", "%%", "%ld", "%%"],
        ),
        ("a 50%off% b, <0>dog</0> <1/> I <3 you > me", ["<0>", "</0>", "<1/>"]),
        ("Ask a.b+c@d-e.org. Or @me and #topic-1!", ["a.b+c@d-e.org", "@me", "#topic-1"]),
        (
            "5 km, 3.5 GB, -4 °C, $20, €1,000.50, 120 km/h, 16px",
            ["5 km", "3.5 GB", "-4 °C", "$20", "€1,000.50", "120 km/h", "16px"],
        ),
        ("Version 2.0.1 and v3, 3.14 or 1,000", ["2.0.1", "v3", "3.14", "1,000"]),
        ("In /usr/bin/x or report.pdf, --force max_len", ["/usr/bin/x", "report.pdf", "--force", "max_len"]),
        ('<x id=1/>Hi<g id="2">!</g> &nbsp;', ["<x id=1/>", '<g id="2">', "</g>", "&nbsp;"]),
        ("日本 is 🎉", ["日本", "🎉"]),
        ("I have 3 dogs and 20 cats; it's 50-50, and/or men. A < b, a {b.", []),
        ("Where is it? I'm sure he'd say: \"No.\" (Yes!) – well…", []),
    ],
)
def test_placeholders_and_nothing_else_are_found(text: str, kept: list[str]) -> None:
    assert _found(text) == kept


# For each pattern, placeholders that no other pattern finds.
_SAMPLES = (
    ("https://a.b", "ftp://a.b", "file://a", "ws://a.b", "git://a.b", "ssh://a.b", "www.example.fr", "mailto:me"),
    ("me@example.fr",),
    ("{name}", "{{name}}", "${name}", "%{name}", "#{name}"),
    ("%name%",),
    ("%(name)s",),
    ("%s",),
    ("%NAME%", "%%"),
    ("$name",),
    ("[[name]]", "__name__"),
    ("/usr/lib/python", "./a/b", "../a/b", "~/a/b", "c:\\temp"),
    ("report.pdf", "example.com", "my-file.c", "notes.md"),
    ("--force",),
    ("max_length",),
    ("v2", "1.2.3"),
    ("€ 5", "5 km"),
    ("3.14",),
    ("@name", "#topic"),
)


@pytest.mark.parametrize(
    ("pattern", "sample"),
    [
        (pattern, sample)
        for pattern, samples in zip(placeholders._PATTERNS, _SAMPLES, strict=True)
        for sample in samples
    ],
)
def test_each_pattern_finds_its_placeholders(pattern: str, sample: str) -> None:
    assert regex.fullmatch(pattern, sample)
    text = f"the {sample} is here"
    assert _found(text) == [sample]
    assert may_be_special(text, UNKNOWN)


@pytest.mark.parametrize("sample", ["<x/>", "</x>", "<0>", "&nbsp;", "&#10;", "&#xa;", "\\n"])
def test_each_mark_is_found(sample: str) -> None:
    assert _found(f"the {sample} is here") == [sample]
    assert may_be_special(f"the {sample} is here", UNKNOWN)


def test_tags_and_symbols_are_marks() -> None:
    kinds = {text: found.kind for text in ("<x/>", "🎉", "%s", "日本") for found in find_placeholders(text, UNKNOWN)}
    assert kinds == {"<x/>": Kind.MARK, "🎉": Kind.MARK, "%s": Kind.WORD, "日本": Kind.WORD}


def test_substitutes_are_not_in_the_sentence_and_others_the_second_time() -> None:
    first, second = choose_substitutes(2, "Tom is here", 0), choose_substitutes(2, "Tom is here", 1)
    assert first is not None
    assert second is not None
    assert "Tom" not in first + second
    assert first[0] != second[0]
    assert choose_substitutes(MAX_SUBSTITUTES + 1, "", 0) is None


@pytest.mark.parametrize(
    ("text", "paired"),
    [
        ("<b>a</b> <0>b <1/><x>c</x></0>", "<b> </b> <0> <x> </x> </0>"),
        ("Use <b> or </i>, <br>or <p>a<br>b</p>", "<p> </p>"),
        ("<a><b>c</a></b> <c></C>", "<a> </a>"),
    ],
)
def test_tags_that_are_nested_and_closed_are_pairs(text: str, paired: str) -> None:
    pairs = [
        text[found.start : found.end]
        for found in find_placeholders(text, UNKNOWN)
        if found.kind in (Kind.OPENING, Kind.CLOSING)
    ]
    assert " ".join(pairs) == paired


@pytest.mark.parametrize("translation", ["Tom und Tom", "Toms Haus", "Tommy", "", "tom", "Tom, Toms"])
def test_a_substitute_counts_only_as_a_word_that_is_there_once(translation: str) -> None:
    assert find_substitutes(translation, ["Tom"]) is None
    assert find_substitutes("Hallo, Tom!", ["Tom"]) == [(7, 10)]
