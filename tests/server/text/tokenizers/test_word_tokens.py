from server.text.tokenizers.word_tokens import continuation_tokens


def test_letters_and_digits_without_a_mark_continue_a_word() -> None:
    pieces = ["</s>", "\u2581the", "s", "ung", "7", "\u0301", ".", "-", "\u2581", "'", "<0x41>", ""]
    assert continuation_tokens(pieces) == {2, 3, 4, 5}


def test_any_character_may_begin_a_word_in_languages_without_spaces() -> None:
    assert continuation_tokens(["\u2581", "\u4eca", "\u3053\u308c", "\u0e44", "ung"]) == {4}


def test_a_vocabulary_without_marks_has_no_continuations() -> None:
    assert continuation_tokens(["the", "s"]) == frozenset()
    assert continuation_tokens(["\u0120the", "s"]) == {1}
