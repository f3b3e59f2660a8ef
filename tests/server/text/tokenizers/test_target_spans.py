from server.text.tokenizers.target_spans import spans_of_beginnings


def test_tokens_cover_what_they_add() -> None:
    texts = ["", "ab", "ab", "abcd", "abc", "abcdef"]
    spans = spans_of_beginnings(range(5), "abcde", lambda tokens: texts[len(tokens)])
    assert spans == [(0, 2), (2, 2), (2, 4), (4, 4), (4, 5)]
    assert spans_of_beginnings([], "", lambda _: "") == []
