import random

import pytest

from loadtest.workload.texts.grammar import Grammar, GrammarInvalid
from loadtest.workload.texts.sources import grammar_of


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("num_words", [*range(1, 20), 25, 30, 40, 50, 59, 60])
def test_a_sentence_has_the_wanted_number_of_words(language: str, num_words: int) -> None:
    grammar, rng = grammar_of(language), random.Random(num_words)
    for _ in range(30):
        sentence = grammar.sentence(num_words, rng.random)
        assert len(sentence.split()) == num_words
        assert sentence[0].isupper()
        assert sentence[-1] in ".?!"
        assert "  " not in sentence
        assert not set(sentence) & set("{}|/%")
        assert ",," not in sentence
        assert " ," not in sentence


def test_sentences_are_counted_exactly() -> None:
    grammar = Grammar("sentence = a b | c | {x} {x}\nx = y | z | y", max_words=2)
    rng = random.Random(1)
    assert grammar.num_sentences(1) == 1
    assert grammar.num_sentences(2) == 1 + 9
    assert {grammar.sentence(2, rng.random) for _ in range(200)} == {"A b", "Y y", "Y z", "Z y", "Z z"}


def test_a_limit_holds() -> None:
    grammar = Grammar("sentence = a | {part}, {part}\npart/3 = a | {part} a", max_words=6)
    assert [grammar.num_sentences(num_words) for num_words in (2, 3, 4, 5, 6)] == [1, 2, 3, 2, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("other = a", "no name `sentence`"),
        ("sentence = {noun} {verb}", "`sentence` contains unknown names: noun, verb"),
        ("sentence = a b", r"no sentence of \[1, 3, 4"),
        ("sentence = a | a {sentence} | {again}\nagain = {sentence}", "leads back to itself"),
    ],
)
def test_an_invalid_grammar_is_rejected(text: str, message: str) -> None:
    with pytest.raises(GrammarInvalid, match=message):
        Grammar(text)
