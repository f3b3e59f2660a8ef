import random

import pytest

from loadtest.workload.texts.grammar import MAX_WORDS, Grammar, GrammarInvalid
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


@pytest.mark.parametrize("language", ["en", "de"])
def test_there_are_millions_of_sentences_of_every_ordinary_length(language: str) -> None:
    grammar = grammar_of(language)
    assert grammar.num_sentences(2) > 30_000
    assert min(grammar.num_sentences(num_words) for num_words in range(3, MAX_WORDS + 1)) > 1_000_000


def test_sentences_are_counted_exactly() -> None:
    grammar = Grammar("sentence = a b | c | {x} {x}\nx = y | z | y", max_words=2)
    rng = random.Random(1)
    assert grammar.num_sentences(1) == 1
    assert grammar.num_sentences(2) == 1 + 9
    assert {grammar.sentence(2, rng.random) for _ in range(200)} == {"A b", "Y y", "Y z", "Z y", "Z z"}


def test_an_alternative_with_few_sentences_is_chosen_less_often() -> None:
    many = " | ".join(f"w{number}" for number in range(100))
    grammar = Grammar(f"sentence = {{rare}} | {{frequent}}\nrare = r\nfrequent = {many}", max_words=1)
    rng = random.Random(1)
    share = sum(grammar.sentence(1, rng.random) == "R" for _ in range(2000)) / 2000
    assert share == pytest.approx(1 / 11, abs=0.03)


def test_a_limit_holds() -> None:
    grammar = Grammar("sentence = a | {part}, {part}\npart/3 = a | {part} a", max_words=6)
    assert [grammar.num_sentences(num_words) for num_words in (2, 3, 4, 5, 6)] == [1, 2, 3, 2, 1]


def test_a_percent_sign_is_itself() -> None:
    grammar = Grammar("sentence = {half} | a b\nhalf = 50 % off | 9%", max_words=3)
    assert grammar.sentence(1, lambda: 0.0) == "9%"
    assert grammar.sentence(3, lambda: 0.0) == "50 % off"


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
