"""Ends of translated fragments."""

import pytest

from server.text.protection.fragment_end import without_end


@pytest.mark.parametrize(
    ("source", "answer", "behind", "fragment"),
    [
        ("by default", "standardmäßig.", " 17", "standardmäßig"),
        ("for all of you", "für alle,", ".", "für alle"),
        ("says to him", "sagt zu ihm:", ", “", "sagt zu ihm"),
        ("please tell", "sagen Sie uns,", " #17", "sagen Sie uns,"),
        ("now enabled (Firefox bug", "nun aktiv (Firefox-Bug)", " 17).", "nun aktiv (Firefox-Bug"),
        ("now enabled (Firefox bug", "nun aktiv (Firefox-Bug).", " 17).", "nun aktiv (Firefox-Bug"),
        ("set the [first", "das [erste]", " 17].", "das [erste"),
        ('asks "John', "fragt „John“.", '"', "fragt „John"),
        ("asks John", 'fragt John".', "", "fragt John"),
        ("in the (red) house", "im Haus (rot)", "", "im Haus (rot)"),
        ("he says yes", "...", "", "..."),
    ],
)
def test_marks_that_the_source_has_behind_a_fragment_are_left_out(
    source: str, answer: str, behind: str, fragment: str
) -> None:
    assert without_end(answer, source, behind) == fragment
