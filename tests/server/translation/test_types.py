from server.translation.types import TokenCounts


def test_sentences_are_counted_by_their_numbers_of_tokens() -> None:
    counts = TokenCounts.of([(3, 4), (3, 5), (7, 4)])
    assert counts == TokenCounts({3: 2, 7: 1}, {4: 2, 5: 1})
    assert (counts.num_sentences, counts.num_source_tokens, counts.num_target_tokens) == (3, 13, 13)
    total = counts + TokenCounts.of([(7, 9)])
    assert total == TokenCounts({3: 2, 7: 2}, {4: 2, 5: 1, 9: 1})
    assert (total.num_sentences, total.num_source_tokens, total.num_target_tokens) == (4, 20, 22)
    assert TokenCounts.of([]).num_sentences == 0
