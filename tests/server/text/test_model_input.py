"""Model input: characters that only control how a word is broken are removed, and parts become sentences."""

import pytest

from server.text.protection.capitals import Casing
from server.text.protection.model_input import ModelInput
from server.text.protection.truecaser import CasedWords
from server.text.readers.plain_text import may_be_special
from server.text.readers.unknown_characters import UnknownCharacters
from server.translation.types import TextFormat
from tests.server.text.identity import Identity


@pytest.mark.parametrize("character", ["\N{SOFT HYPHEN}", "\N{WORD JOINER}", "\N{ZERO WIDTH NON-JOINER}"])
@pytest.mark.parametrize("format_", ["text", "html"])
def test_characters_that_control_line_breaks_are_removed(
    identity: Identity, character: str, format_: TextFormat
) -> None:
    identity.engine.batches.clear()
    assert identity([f"the d{character}og jumps"], format_) == ["the dog jumps"]
    assert identity.model_inputs == ["the dog jumps"]


def test_a_soft_hyphen_is_removed_even_if_the_vocabulary_contains_it() -> None:
    unknown = UnknownCharacters(map(chr, range(0x250)))
    assert may_be_special("d\N{SOFT HYPHEN}og", unknown)
    assert unknown.with_plainer_forms("d\N{SOFT HYPHEN}og") == "dog"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("the dog", "the dog."), ("it is 15%", "it is 15%."), ("it is 15 €", "it is 15 €."), ("the dog!", "the dog!")],
)
def test_a_part_that_ends_with_a_word_or_an_item_is_read_as_a_sentence(text: str, sentence: str) -> None:
    assert ModelInput(text, [], [], CasedWords(Casing.USUAL, [])).with_full_stop().text == sentence
