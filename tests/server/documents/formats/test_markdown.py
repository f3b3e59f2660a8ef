"""Parts of Markdown files that are no text: data at the top, boxes of tasks, line ends."""

import pytest

from tests.server.documents.documents import LOUD, SAME, translated


@pytest.mark.parametrize(
    ("data", "rest"),
    [
        ("---\ntitle: a b\n---\n", "c d\n"),
        ("--- \ntitle: a b\n--- \t\n", "c d\n"),
        ("---\ntitle: a b\n---", ""),
        ("---\n---\n", "c d\n"),
        ('+++\ntitle = "a b"\n\n[menu]\n+++\n', "c d\n"),
        ("", "+++\nc d\n"),
        ("", "---\nc d\n"),
        ("", "---\nc d\n\n+++\n"),
    ],
)
def test_data_at_the_top_stays(data: str, rest: str) -> None:
    assert translated((data + rest).encode(), ".md", SAME).decode() == data + rest
    loud = translated((data + rest).encode(), ".md", LOUD).decode()
    assert loud.startswith(data)
    assert loud.removeprefix(data).split() == rest.upper().split()


def test_boxes_of_tasks_stay() -> None:
    text = "- [ ] a b\n- [x] [c](x)\n- [X]\td\n- [x](x) e [ ] f\n"
    assert translated(text.encode(), ".md", SAME).decode() == text
    expected = "- [ ] A B\n- [x] [C](x)\n- [X]\tD\n- [X](x) E [ ] F\n"
    assert translated(text.encode(), ".md", LOUD).decode() == expected
