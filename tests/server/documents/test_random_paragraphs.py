"""Random paragraphs, and translations that put their parts in random order: nothing is lost, nothing doubled."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from lxml import etree, html

from server.documents.rewriting import Translate
from tests.server.documents.documents import SAME, packed, translated, unpacked

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    'wordprocessingml.document.main+xml"/></Types>'
)
STYLES = ("", "<w:b/>", "<w:i/>", '<w:b/><w:lang w:val="de"/>')
NUM_PARAGRAPHS = 150


def _run(chooser: random.Random, words: list[str]) -> str:
    content = ""
    for _ in range(chooser.choice((1, 1, 1, 2, 3))):
        kind = chooser.randrange(12)
        if kind < 9:
            words.append(f"word{len(words)}")
            content += (
                f'<w:t xml:space="preserve">{chooser.choice(("", " "))}{words[-1]}{chooser.choice(("", " "))}</w:t>'
            )
        else:
            content += ("<w:tab/>", '<w:footnoteReference w:id="1"/>', "<w:t>  </w:t>")[kind - 9]
    return f"<w:r><w:rPr>{chooser.choice(STYLES)}</w:rPr>{content}</w:r>"


def _paragraph(chooser: random.Random, words: list[str]) -> str:
    content = ""
    for _ in range(chooser.randrange(6)):
        kind = chooser.randrange(10)
        runs = "".join(_run(chooser, words) for _ in range(chooser.choice((1, 1, 2, 3))))
        if kind < 7:
            content += runs
        elif kind == 7:
            content += f'<w:hyperlink w:anchor="x">{runs}</w:hyperlink>'
        elif kind == 8:
            content += f'<w:bookmarkStart w:id="1" w:name="x"/>{runs}<w:bookmarkEnd w:id="1"/>'
        else:
            content += f'<w:ins w:id="1"><w:hyperlink w:anchor="y">{runs}</w:hyperlink></w:ins>'
    return f"<w:p>{content}</w:p>"


def _document(seed: int) -> bytes:
    chooser, words = random.Random(seed), list[str]()
    body = "".join(_paragraph(chooser, words) for _ in range(NUM_PARAGRAPHS))
    document = f'<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>'
    return packed({"[Content_Types].xml": TYPES.encode(), "word/document.xml": document.encode()})


def _shuffled(chooser: random.Random, parent: etree._Element) -> None:
    """Put text and elements in another order, on every level."""
    for child in parent:
        _shuffled(chooser, child)
    nodes: list[str | etree._Element] = [parent.text or ""]
    for child in list(parent):
        nodes += [child, child.tail or ""]
        child.tail = None
        parent.remove(child)
    parent.text = ""
    chooser.shuffle(nodes)
    for node in nodes:
        if not isinstance(node, str):
            parent.append(node)
        elif len(parent):
            parent[-1].tail = (parent[-1].tail or "") + node
        else:
            parent.text += node


@pytest.mark.parametrize("seed", range(2))
def test_what_is_moved_is_neither_lost_nor_doubled(seed: int) -> None:
    chooser = random.Random(seed)

    async def shuffle(texts: Sequence[str]) -> list[str]:
        results = []
        for text in texts:
            root = html.fragment_fromstring(text, create_parent="div")
            _shuffled(chooser, root)
            written = etree.tostring(root, method="html", encoding="unicode")
            results.append(written.removeprefix("<div>").removesuffix("</div>"))
        return results

    async def same(texts: Sequence[str]) -> list[str]:
        return list(texts)

    content = _document(seed)
    result = translated(content, ".docx", Translate(same, shuffle))
    before, after = (etree.fromstring(unpacked(each)["word/document.xml"]) for each in (content, result))
    for old, new in zip(before.iter(f"{{{W}}}p"), after.iter(f"{{{W}}}p"), strict=True):
        assert _words(old) == _words(new)
        for name in ("tab", "footnoteReference", "hyperlink", "bookmarkStart", "bookmarkEnd", "ins"):
            assert _count(old, name) == _count(new, name), name
    assert unpacked(translated(content, ".docx", SAME)) == unpacked(content)


def _words(paragraph: etree._Element) -> Counter[str]:
    """Words, whatever stands between them; those that touched another in the source may be apart now."""
    text = "".join(leaf.text or "" for leaf in paragraph.iter(f"{{{W}}}t"))
    return Counter(text.replace("word", " word").split())


def _count(paragraph: etree._Element, name: str) -> int:
    return len(list(paragraph.iter(f"{{{W}}}{name}")))
