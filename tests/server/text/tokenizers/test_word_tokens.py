from server.interface.word_tokens import NO_WORDS
from server.text.tokenizers.word_tokens import word_tokens


def test_letters_and_digits_without_a_mark_continue_a_word() -> None:
    pieces = ["</s>", "\u2581the", "s", "ung", "7", "\u0301", ".", "-", "\u2581", "'", "<0x41>", ""]
    assert word_tokens(pieces, ()).continuations == {2, 3, 4, 5}


def test_any_character_may_begin_a_word_in_languages_without_spaces() -> None:
    assert word_tokens(["\u2581", "\u4eca", "\u3053\u308c", "\u0e44", "ung"], ("zh",)).continuations == {4}


def test_a_vocabulary_without_marks_has_no_continuations() -> None:
    assert word_tokens(["the", "s"], ("en",)) == NO_WORDS
    assert word_tokens(["\u0120the", "s"], ("en",)).continuations == {1}


def test_endings_are_those_of_the_target_languages() -> None:
    pieces = ["\u2581en", "en", "s", "ung", "\u2581e"]
    assert word_tokens(pieces, ("en-GB",)).endings == {2}
    assert word_tokens(pieces, ("en", "de-CH")).endings == {1, 2}
    assert word_tokens(pieces, ("ja",)).endings == frozenset()
