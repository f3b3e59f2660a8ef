import json

import pytest

from loadtest.native import WrongAnswer, read_answer, request_body
from loadtest.workload import TextRequest

ONE = TextRequest(("Good morning.",), is_list=False, num_sentences=1, beam_size=1)
TWO = TextRequest(("Good morning.", "Good night."), is_list=True, num_sentences=2, beam_size=4)


def test_one_text_is_sent_as_a_string_and_several_as_a_list() -> None:
    assert request_body(ONE, "en", "de") == {"text": "Good morning.", "source": "en", "target": "de", "beam_size": 1}
    assert request_body(TWO, "en", "de")["text"] == ["Good morning.", "Good night."]
    assert request_body(TWO, "en", "de")["beam_size"] == 4


def test_target_tokens_are_summed_over_the_translations() -> None:
    answer = {
        "translations": [{"text": "Guten Morgen.", "target_tokens": 4}, {"text": "Gute Nacht.", "target_tokens": 3}]
    }
    assert read_answer(json.dumps(answer).encode(), TWO) == 7


def test_an_answer_without_token_counts_is_an_answer() -> None:
    assert read_answer(b'{"translations": [{"text": "Guten Morgen."}]}', ONE) == 0


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>", "not JSON"),
        (b"[]", "no list of translations"),
        (b"{}", "no list of translations"),
        (b'{"translations": {"text": "a"}}', "no list of translations"),
        (b'{"translations": []}', "another number"),
        (b'{"translations": [{"text": "a"}, {"text": "b"}]}', "another number"),
        (b'{"translations": ["a"]}', "no text"),
        (b'{"translations": [{"text": null}]}', "no text"),
        (b'{"translations": [{"text": " "}]}', "empty"),
    ],
)
def test_an_answer_to_something_else_is_wrong(body: bytes, reason: str) -> None:
    with pytest.raises(WrongAnswer, match=reason):
        read_answer(body, ONE)
