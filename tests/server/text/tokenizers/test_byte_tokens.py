from bundle.loading import Bundle
from server.text.tokenizers.byte_tokens import ByteTokenizer

_END = 0  # of the fake bundle


def test_text_is_the_bytes_of_utf8_behind_three_control_tokens(echo_bundle: Bundle) -> None:
    tokenizer = ByteTokenizer(echo_bundle)
    assert tokenizer.encode_target("aä") == [ord("a") + 3, 0xC3 + 3, 0xA4 + 3]
    assert tokenizer.encode("a").tolist() == [100, _END]
    assert tokenizer.encode_target("\ud800") == tokenizer.encode_target("\ufffd")
    assert tokenizer.count_tokens("aä") == 4


def test_tokens_that_are_no_bytes_have_no_text(echo_bundle: Bundle) -> None:
    tokenizer = ByteTokenizer(echo_bundle)
    assert tokenizer.decode([0, 1, 2, 3, 100, 258, 259, 400]) == "\x00a"  # 255 is no character by itself
    assert tokenizer.source_pieces([2, 3, 258, 259]) == ["", "\x00", "\xff", ""]
    assert tokenizer.target_pieces([100]) == ["a"]


def test_a_beginning_lacks_a_character_of_which_bytes_are_missing(echo_bundle: Bundle) -> None:
    tokenizer = ByteTokenizer(echo_bundle)
    tokens = tokenizer.encode_target("aä€")
    beginnings = [tokenizer.decode_beginning(tokens[:length]) for length in range(len(tokens) + 1)]
    assert beginnings == ["", "a", "a", "aä", "aä", "aä", "aä€"]
    assert tokenizer.target_spans(tokens, "aä€") == [(0, 1), (1, 1), (1, 2), (2, 2), (2, 2), (2, 3)]


def test_each_byte_has_the_range_of_its_character(echo_bundle: Bundle) -> None:
    assert ByteTokenizer(echo_bundle).source_spans("aä") == [(0, 1), (1, 2), (1, 2), (2, 2)]


def test_all_assigned_characters_are_known(echo_bundle: Bundle) -> None:
    known = ByteTokenizer(echo_bundle).known_characters
    assert {"a", "ж", "你", "\U0001f389", " "} <= known
    assert known.isdisjoint(("\ud800", "\ue000", "\u0378"))
