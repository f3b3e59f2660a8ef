"""What a model is told of a text: numbers as they are, and no marks that only say where a word may be broken."""

import pytest

from server.text.drafts import Answer, draft
from server.text.markdown import may_be_special, read_text
from server.text.symbols import Symbols
from server.text.tags import render
from server.text.units import Unit
from server.translation import TextFormat
from tests.server.text.identity import Identity


@pytest.mark.parametrize("character", ["\N{SOFT HYPHEN}", "\N{WORD JOINER}", "\N{ZERO WIDTH NON-JOINER}"])
@pytest.mark.parametrize("format_", ["text", "html"])
def test_where_a_word_may_be_broken_is_not_told(identity: Identity, character: str, format_: TextFormat) -> None:
    identity.generator.batches.clear()
    assert identity([f"the d{character}og jumps"], format_) == ["the dog jumps"]
    assert identity.told == ["the dog jumps"]


def test_a_soft_hyphen_is_read_as_nothing_though_the_vocabulary_has_it() -> None:
    symbols = Symbols(map(chr, range(0x250)))
    assert may_be_special("d\N{SOFT HYPHEN}og", symbols)
    assert symbols.readable("d\N{SOFT HYPHEN}og") == "dog"


def test_a_number_stays_as_the_model_has_written_it() -> None:
    [unit] = (part for part in read_text("the dog & 12:30 %s", Symbols(map(chr, range(128)))) if isinstance(part, Unit))
    told = draft(unit, (0, len(unit.text)), ["12:30", "Tom"], "en")
    part = told.part(Answer("12.30 der Hund & Tom", (), (), None))
    assert part is not None
    assert render(unit, part.text, [part.block], part.outputs) == "12.30 der Hund & %s"


def test_a_number_is_told_as_it_is(identity: Identity) -> None:
    identity.generator.batches.clear()
    assert identity(["the dog is 42 and {name}"]) == ["the dog is 42 and {name}"]
    assert identity.told == ["the dog is 42 and Tom"]
