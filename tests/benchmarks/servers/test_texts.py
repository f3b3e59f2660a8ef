"""The other servers translate the same sentences as Kvasir."""

from pathlib import Path

import pytest

from benchmarks.servers.texts import join, split
from server.text.segmentation import sentences

ROOT = Path(__file__).resolve().parent.parent.parent.parent
PROSE = (ROOT / "README.md").read_text("utf-8")
TEXTS = [
    "Good morning. How are you today?",
    "  Dr. Smith paid $3.50.  He left!\n\n\tThen he came back.\n",
    "One\nTwo\n...\nThree",
    "",
    " \n ",
    PROSE,
]


# In text with code, Kvasir's own rules find other ends of sentences than `sentencex`.
@pytest.mark.parametrize("text", TEXTS[:-1])
def test_the_sentences_are_those_of_kvasir(text: str) -> None:
    theirs = [part.text for part in split(text, "en", lambda _: True) if part.is_sentence]
    segments = (segment.text for segment in sentences.split(text, "en", lambda _: True))
    ours = [segment for segment in segments if any(map(str.isalnum, segment))]
    assert theirs == ours


@pytest.mark.parametrize("text", TEXTS)
def test_joined_sentences_equal_the_text(text: str) -> None:
    parts = split(text, "en", lambda _: True)
    assert join(parts, [part.text for part in parts if part.is_sentence]) == text
