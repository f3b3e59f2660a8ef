"""Markup of hostile documents: wide, deep, dense, repeated and unclosed; `hostile_uploads` sends them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.faults.documents import book, open_document, slides, word, workbook, xliff
from tests.server.documents.pdf import pdf

NUM_BYTES = 200_000
NUM_FEW = 300


@dataclass(frozen=True)
class Format:
    """A format: pairs of markup around a text, the beginning of a paragraph and its end, and its container."""

    pairs: Sequence[tuple[str, str]]
    paragraph: tuple[str, str]
    contain: Callable[[str], bytes] = str.encode


def _repeated(text: str, num_bytes: int = NUM_BYTES) -> str:
    return text * (num_bytes // max(1, len(text)))


SHAPES: Mapping[str, Callable[[str, str, str, str], str]] = {
    "wide": lambda begin, end, open_, close: _repeated(f"{begin}{open_}a word{close}{end}"),
    "deep": lambda begin, end, open_, close: f"{begin}{open_ * NUM_FEW}a word{close * NUM_FEW}{end}" * 100,
    "dense": lambda begin, end, open_, close: f"{begin}x{_repeated(f'{open_}a{close}')}{end}",
    "repeated": lambda begin, end, open_, close: (
        f"{begin}{_repeated(open_ + close)}word{_repeated(open_ + close)}{end}"
    ),
    "unclosed": lambda begin, end, open_, close: _repeated(f"{begin}{open_}") + f"word{end}",
}


def _elements(prefix: str, *names: str) -> list[tuple[str, str]]:
    return [(f"<{prefix}{name}>", f"</{prefix}{name.split()[0]}>") for name in names]


_RUN = "<w:r><w:t>a</w:t></w:r>"
FORMATS: Mapping[str, Format] = {
    ".html": Format(
        [
            *_elements("", "b", "font size=1", "a href=x", "code", "div", "ruby", "svg", "pre"),
            ("{{ a }}", "{% b %}"),
            ("<?php ", "?>"),
        ],
        ("<p>", ""),
    ),
    ".epub": Format(
        _elements("", "b", "i", 'a href="x"', "code", "div", "ruby", "sub", "span", "pre", "li"),
         ("<p>", "</p>"), book
    ),
    ".odt": Format(
        _elements("text:", "span", "a", "note", "s", "bookmark", "p", "h", "ruby", "meta", "tab"),
        ("<text:p>", "</text:p>"),
        open_document,
    ),
    ".docx": Format(
        [
            ("<w:r><w:t>", "</w:t></w:r>"),
            ("<w:r><w:rPr><w:b/></w:rPr><w:t>", "</w:t></w:r>"),
            ("<w:r><w:t>b</w:t><w:tab/><w:t>", "</w:t></w:r>"),
            (f"<w:hyperlink>{_RUN}", "</w:hyperlink>"),
            (f"<w:ins>{_RUN}", "</w:ins>"),
            (f"<w:sdt><w:sdtContent>{_RUN}", "</w:sdtContent></w:sdt>"),
            ('<w:r><w:fldChar w:fldCharType="begin"/></w:r>', '<w:r><w:fldChar w:fldCharType="end"/></w:r>'),
            (f"<w:tbl><w:tr><w:tc><w:p>{_RUN}", "</w:p></w:tc></w:tr></w:tbl>"),
            (f"<w:r><w:pict><w:p>{_RUN}", "</w:p></w:pict></w:r>"),
            ("<w:r><w:footnoteReference/></w:r>", _RUN),
        ],
        ("<w:p>", "</w:p>"),
        word,
    ),
    ".pptx": Format(
        [
            ("<a:r><a:t>", "</a:t></a:r>"),
            *(
                (f"<a:r><a:rPr {attribute}/><a:t>", "</a:t></a:r>")
                for attribute in ('b="1"', 'i="1"', 'sz="9"', 'lang="de"')
            ),
            ("<a:r><a:rPr><a:hlinkClick/></a:rPr><a:t>", "</a:t></a:r>"),
            ("<a:br/><a:r><a:t>", "</a:t></a:r>"),
            ("<a:fld><a:t>", "</a:t></a:fld>"),
            ("<a:p><a:r><a:t>a</a:t></a:r>", "</a:p>"),
            ("<a:x>", "</a:x>"),
        ],
        ("<a:p>", "</a:p>"),
        slides,
    ),
    ".md": Format(
        [("*", "*"), ("**", "**"), ("[", "](x)"), ("`", "`"), ("> ", "\n"), ("- ", "\n"), ("|", "|\n|-|\n"),
         ("<b>", "</b>"), ("<div>\n", "</div>\n"), ("{% a %}", "{{ b }}")],
        ("", "\n\n"),
    ),
    ".srt": Format(
        [("<i>", "</i>"), ("<b>", "</b>"), ("{\\an8}", ""), ("- ", "\n"), ("<font color=x>", "</font>"), ("\n", "\n"),
         ("<", ">"), ("{", "}"), ("1\n", "\n"), ("00:00:01,000 --> ", "\n")],
        ("\n1\n00:00:01,000 --> 00:00:02,000\n", "\n\n"),
    ),
    ".po": Format(
        [("\\n", ""), ('"\n"', ""), ('"\nmsgid_plural "', ""), ('"\n# ', '\n"'), ('"\n#~ "', '"\n"'), ("\\", "\\"),
         ('"\nmsgctxt "', ""), ('"\nmsgstr "', '"\n\nmsgid "b'), ("%(a)s", ""), ("\\t", "")],
        ('msgid "', '"\nmsgstr ""\n\n'),
    ),
    ".csv": Format(
        [('"', '"'), (",", ""), (";", ""), ("\t", ""), ('","', ""), ('""', ""), ("|", ""), ("\r", ""), (' "', '" '),
         ("=", "")],
        ("", "\n"),
    ),
    ".txt": Format(
        [(" ", ""), ("\t", ""), ("\r", ""), ("\u2028", ""), ("é", ""), (". ", ""), ("\x01", ""), ("<b>", "</b>"),
         ("😀", ""), ("\u200b", "")],
        ("", "\n"),
    ),
    ".vtt": Format(
        [("<b>", "</b>"), ("<c.x>", "</c>"), ("<v A>", "</v>"), ("<00:01.000>", ""), ("- ", "\n"), ("\n", ""),
         ("&amp;", ""),
         ("<ruby>", "</ruby>"), ("-->", ""), ("<", ">")],
        ("00:01.000 --> 00:02.000\n", "\n\n"), lambda text: f"WEBVTT\n\n{text}".encode(),
    ),
    ".ass": Format(
        [("{\\i1}", "{\\i0}"), ("\\N", ""), ("\\n", ""), ("\\h", ""), ("{", "}"), ("{\\p1}", "{\\p0}"), (",", ""),
         ("- ", "\\N"),
         ("{\\k1}", ""), ("\\", "")],
        ("Dialogue: 1,2,3,4,5,6,7,8,9,", "\n"), lambda text: f"[Events]\n{text}".encode(),
    ),
    ".json": Format(
        [("\\n", ""), ("\\u00e9", ""), ('\\"', ""), ("{a}", ""), ("{a, plural, one {", "}}"), ("<b>", "</b>"),
         ("\\\\", ""),
         ('","', ""), ("%s", ""), ("\\ud83d\\ude00", "")],
        ('"', '",'), lambda text: f'[{text}""]'.encode(),
    ),
    ".yaml": Format(
        [("'", "'"), ('"', '"'), ("{", "}"), ("[", "]"), ("&a ", ""), ("*a", ""), ("# ", ""), (": ", ""),
         ("|\n  ", ""), ("? ", "")],
        ("- ", "\n"),
    ),
    ".properties": Format(
        [("\\\n", ""), ("\\u00e9", ""), ("=", ""), (":", ""), ("#", ""), ("\\", ""), ("{0}", ""), ("\\n", ""),
         (" ", ""), ("\\ud83d", "")],
        ("a=", "\n"),
    ),
    ".strings": Format(
        [("\\n", ""), ('\\"', ""), ("\\U00e9", ""), ("/*", "*/"), ("//", "\n"), ("%@", ""), ("\\", "n"), (";", ""),
         ("=", ""), ("{", "}")],
        ('"a" = "', '";\n'),
    ),
    ".xliff": Format(
        _elements("", 'g id="1"', "x", 'mrk mtype="a"', "ph", "bpt", "sub", "it", 'g translate="no"', "target", "note"),
        ("<trans-unit><source>", "</source></trans-unit>"), xliff,
    ),
    ".xlsx": Format(
        [("<r><t>", "</t></r>"), ("<r><rPr><b/></rPr><t>", "</t></r>"), ("<rPh><t>", "</t></rPh>"), ("<t>", "</t>"),
         ("<phoneticPr/>", ""), ("<x>", "</x>"), ("<r>", "</r>"), ("<is><t>", "</t></is>"),
         ("<si><t>", "</t></si>"), ("<!--", "-->")],
        ("<si>", "</si>"), workbook,
    ),
    ".pdf": Format(
        [("(", ") Tj\n"), ("[(", ")] TJ\n"), ("BT (", ") Tj ET\n"), ("q ", "Q "), ("/F2 9 Tf (", ") Tj\n"),
         ("1 0 Td (", ") Tj\n"), ("<", "> Tj\n"),
         ("[", "]"), ("<<", ">>"), ("0 0 m 9 9 l S ", "")],
        ("BT /F1 12 Tf 9 9 Td ", " ET\n"), pdf,
    ),
}  # fmt: skip
