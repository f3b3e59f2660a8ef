"""Detection of items in text, and their substitutes."""

import pytest

from server.text.items.kinds import ItemKind
from server.text.protection.substitutes import MAX_SUBSTITUTES, choose_substitutes, find_substitutes
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
            "%1 of %n in %L1, :name, @:key.a, @.lower:key, $(date), :user_name",
            ["%1", "%n", "%L1", ":name", "@:key.a", "@.lower:key", "$(date)", ":user_name"],
        ),
        (
            "See https://a.b/c_(d)?e=f#g, www.x.org. (http://y.z/)",
            ["https://a.b/c_(d)?e=f#g", "www.x.org", "(", "http://y.z/", ")"],
        ),
        (
            "Is it https://a.org/wiki/A_(b)? (So says www.a.org/b_(c), or https://a.org/{id}.) [x](http://a.b),(http://c.d)",
            ["https://a.org/wiki/A_(b)", "www.a.org/b_(c)", "https://a.org/{id}", "http://a.b", "http://c.d"],
        ),
        ("At example.com/help, docs.x.io or a.b.", ["example.com/help", "docs.x.io"]),
        (
            "%{name} #{name} @{name} %name%, %d%% %ld%%",
            ["%{name}", "#{name}", "@{name}", "%name%", "%d", "%%", "%ld", "%%"],
        ),
        ("a 50%off% b, <0>dog</0> <1/> I <3 you > me", ["50", "<0>", "</0>", "<1/>", "3", ">"]),
        ("Ask a.b+c@d-e.org. Or @me and #topic-1!", ["a.b+c@d-e.org", "@me", "#topic-1"]),
        (
            "5 km, 3.5 GB, -4 °C, $20, €1,000.50, 120 km/h, 16px",
            ["5 km", "3.5 GB", "-4 °C", "$20", "€1,000.50", "120 km/h", "16px"],
        ),
        (
            "11 %, USD 75, $1.5 million, 12,50 Euro, 1,234.56, 1 250 000",
            ["11 %", "USD 75", "$1.5 million", "12,50 Euro", "1,234.56", "1 250 000"],
        ),
        ("Version 2.0.1 and v3, 3.14 or 1,000", ["2.0.1", "v3", "3.14", "1,000"]),
        ("In /usr/bin/x or report.pdf, --force max_len", ["/usr/bin/x", "report.pdf", "--force", "max_len"]),
        (
            "C:\\Temp\\x.txt, \\\\server\\share, src/main/java, docs/a.md and ~/b.",
            ["C:\\Temp\\x.txt", "\\\\server\\share", "src/main/java", "docs/a.md", "~/b"],
        ),
        (
            "Open data.tar.gz, IMG_0042.PNG and Brief an Oma.docx.",
            ["data.tar.gz", "IMG_0042.PNG", "Brief an Oma.docx"],
        ),
        (
            "Order 4711 on 2026-11-22 at 7:30 pm, 22.11.2026, 14:05 or 7 a.m.",
            ["4711", "2026-11-22", "7:30 pm", "22.11.2026", "14:05", "7 a.m."],
        ),
        (
            "Call +49 30 1234567, 555-1234 or (030) 123456; DE89 3704 0044 0532 0130 00; 4111 1111 1111 1111",
            ["+49 30 1234567", "555-1234", "(030) 123456", "DE89 3704 0044 0532 0130 00", "4111 1111 1111 1111"],
        ),
        (
            "**** **** **** 1234 in C:\\Program Files\\App or 2 ½",
            ["**** **** **** 1234", "C:\\Program Files\\App", "2 ½"],
        ),
        ("No. 5, nr. 7, not 55.079.979. 5,- €", ["No. 5", "nr. 7", "55.079.979", "5,- €"]),
        ("For 20,– Euro or 7.– €, CHF 5.– or 3.–", ["20,– Euro", "7.– €", "CHF 5", "3"]),
        ("Di., 6.5., Montag, 7.5., Antrag, 8.5., x", ["6.5.", "7.5.", "8.5"]),
        ("10k of 0.5 mL, 5 µL, 5 μg and 5 μV", ["10k", "0.5 mL", "5 µL", "5 μg", "5 μV"]),
        ("AB-1234, X200, F-16, 4711-XY and INV-2024-001", ["AB-1234", "X200", "F-16", "4711-XY", "INV-2024-001"]),
        ("the 2nd, 1990s, 3 Mio. and 80er; 5-year-old", ["2nd", "1990s", "3 Mio.", "80er", "5"]),
        ('<x id=1/>Hi<g id="2">!</g> &nbsp;', ["<x id=1/>", '<g id="2">', "</g>", "&nbsp;"]),
        ("日本 is 🎉", ["日本", "🎉"]),
        ("ok ;-) so :'(, a:) (see :b) and =D!", [";-)", ":'(", "=D"]),
        ("I have 3 dogs and 20 cats; it's 50-50, and/or men.", ["3", "20", "50-50"]),
        ("Is it so? I'm sure he'd say: \"No.\" (Yes!) – well…", ['"', '"', "(", ")", "–", "…"]),
        ("Half-open and well-known e.g. of the U.S. it/she/he :) :D a:b A < b, a {b.", [":)", ":D", "<"]),
    ],
)
def test_items_and_nothing_else_are_found(text: str, kept: list[str]) -> None:
    assert _found(text) == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Meet me at half past two.", ["half past two"]),
        ("Halb drei ist zu spät.", ["Halb drei"]),
        ("Deshalb acht, ein Viertel vor Ort, a quarter to nine of them.", []),
    ],
)
def test_a_text_of_words_alone_may_have_a_time(text: str, kept: list[str]) -> None:
    assert (_found(text), may_be_special(text, UNKNOWN)) == (kept, bool(kept))


@pytest.mark.parametrize(
    ("kind", "samples"),
    [
        (ItemKind.URL, "https://a.b ftp://a.b file://a www.example.fr mailto:me example.com/help a.org a.com/b/4#top"),
        (ItemKind.EMAIL, "me@example.fr"),
        (
            ItemKind.PLACEHOLDER,
            "{name} ${name} %{name} #{name} %name% %(name)s %s %NAME% %% $name [[name]] __name__ %L1",
        ),
        (ItemKind.PLACEHOLDER, ":name :user_name @:key $(date) {{name}}"),
        (ItemKind.PATH, "/usr/lib/python ./a/b ../a/b ~/a/b c:\\temp \\\\a\\b src/main/java docs/readme.md"),
        (ItemKind.FILE, "report.pdf my-file.c notes.md data.tar.gz IMG_0042.PNG"),
        (ItemKind.IDENTIFIER, "--force max_length USB-C 10^6 n^2 Xy7!kQ#2"),
        (ItemKind.VERSION, "v2 1.2.3 v1.2.3-rc1 3.0.0-beta+869"),
        (ItemKind.MONEY, "€5 5€ $1.50 US$75"),
        (ItemKind.PERCENTAGE, "5% 2.5%"),
        (ItemKind.QUANTITY, "5km 16px"),
        (ItemKind.DATE, "2026-11-22 22.11.2026 11/22/2026"),
        (ItemKind.TIME, "7:30 7:30pm 23:59:59"),
        (ItemKind.PHONE, "+49301234567 555-1234"),
        (ItemKind.CODE, "X200 AB-1234 3D 802.11ac"),
        (ItemKind.ACCOUNT, "xxxx-xxxx-xxxx-1234 ****1234"),
        (ItemKind.RANGE, "$5-10 $5–$10 5–10€ 2½"),
        (ItemKind.NUMBER, "7 4711 3.14 1,000 2nd"),
        (ItemKind.NAME, "@name"),
        (ItemKind.TAG, "#topic"),
        (ItemKind.SIGN, "— … € <"),
    ],
)
def test_each_kind_of_item_is_found(kind: ItemKind, samples: str) -> None:
    for sample in samples.split():
        text = f"the {sample} is here"
        [found] = find_placeholders(text, UnknownCharacters(map(chr, range(0x3000))))
        assert (text[found.start : found.end], found.item) == (sample, kind)
        assert may_be_special(text, UNKNOWN)


@pytest.mark.parametrize("sample", ["<x/>", "</x>", "<0>", "&nbsp;", "&#10;", "&#xa;", "\\n"])
def test_each_mark_is_found(sample: str) -> None:
    assert _found(f"the {sample} is here") == [sample]
    assert may_be_special(f"the {sample} is here", UNKNOWN)


def test_tags_and_symbols_are_marks() -> None:
    kinds = {text: found.kind for text in ("<x/>", "🎉", "%s", "日本") for found in find_placeholders(text, UNKNOWN)}
    assert kinds == {"<x/>": Kind.MARK, "🎉": Kind.MARK, "%s": Kind.ITEM, "日本": Kind.ITEM}


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


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Press <Enter> now.", Kind.ITEM),
        ("It is in the <head>.", Kind.ITEM),
        ("See (a <my-list>).", Kind.ITEM),
        ("After the </head> it ends.", Kind.ITEM),
        ("One <br> two.", Kind.MARK),
        ("<li> one", Kind.MARK),
        ("One<p>two", Kind.MARK),
        ("See <g id=1> here.", Kind.MARK),
        ("See <x/> here.", Kind.MARK),
        ("See <1> here.", Kind.MARK),
    ],
)
def test_a_tag_that_stands_as_a_word_is_an_item(text: str, kind: Kind) -> None:
    assert [each.kind for each in find_placeholders(text, UnknownCharacters(map(chr, range(128))))] == [kind]
