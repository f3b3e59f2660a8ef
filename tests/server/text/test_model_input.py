"""What a model is told of a text: no marks that only say where a word may be broken."""

import pytest

from server.text.readers.plain_text import may_be_special
from server.text.readers.unknown_characters import UnknownCharacters
from server.translation.types import TextFormat
from tests.server.text.identity import Identity


@pytest.mark.parametrize("character", ["\N{SOFT HYPHEN}", "\N{WORD JOINER}", "\N{ZERO WIDTH NON-JOINER}"])
@pytest.mark.parametrize("format_", ["text", "html"])
def test_where_a_word_may_be_broken_is_not_told(identity: Identity, character: str, format_: TextFormat) -> None:
    identity.generator.batches.clear()
    assert identity([f"the d{character}og jumps"], format_) == ["the dog jumps"]
    assert identity.told == ["the dog jumps"]


def test_a_soft_hyphen_is_read_as_nothing_though_the_vocabulary_has_it() -> None:
    symbols = UnknownCharacters(map(chr, range(0x250)))
    assert may_be_special("d\N{SOFT HYPHEN}og", symbols)
    assert symbols.readable("d\N{SOFT HYPHEN}og") == "dog"
