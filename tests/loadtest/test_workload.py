from itertools import islice
from pathlib import Path

import pytest

from loadtest.workload import Corpus, TextRequest, load_corpus, text_requests

CORPUS = load_corpus()


def _take(num_requests: int, seed: str = "1/0", beam_share: float = 0.2) -> list[TextRequest]:
    return list(islice(text_requests(CORPUS, seed, beam_share), num_requests))


def test_the_corpus_is_varied_english() -> None:
    lengths = [len(sentence.split()) for sentence in CORPUS.sentences]
    assert len(set(CORPUS.sentences)) == len(CORPUS.sentences) >= 60
    assert min(lengths) == 3
    assert max(lengths) == 40
    assert sum(length <= 8 for length in lengths) >= 15
    assert sum(length >= 20 for length in lengths) >= 15
    assert all(len(paragraph) >= 3 for paragraph in CORPUS.paragraphs)


def test_the_same_seed_gives_the_same_requests() -> None:
    assert _take(200) == _take(200)
    assert _take(200) != _take(200, seed="2/0")
    assert _take(200) != _take(200, seed="1/1")


def test_every_sentence_is_sent_before_any_is_sent_again() -> None:
    sentences = [text for request in _take(400) for text in request.texts if text in set(CORPUS.sentences)]
    first_round = sentences[: len(CORPUS.sentences)]
    second_round = sentences[len(CORPUS.sentences) : 2 * len(CORPUS.sentences)]
    assert set(first_round) == set(second_round) == set(CORPUS.sentences)
    assert first_round != second_round


def test_the_three_kinds_of_request_are_all_there() -> None:
    requests = _take(1000)
    paragraphs = [request for request in requests if not request.is_list and request.num_sentences > 1]
    lists = [request for request in requests if request.is_list]
    assert 100 < len(paragraphs) < 200
    assert 100 < len(lists) < 200
    assert all(2 <= len(request.texts) == request.num_sentences <= 8 for request in lists)


@pytest.mark.parametrize(("share", "lowest", "highest"), [(0.0, 0, 0), (0.2, 150, 250), (1.0, 1000, 1000)])
def test_the_share_of_beam_requests_is_the_one_asked_for(share: float, lowest: int, highest: int) -> None:
    assert lowest <= sum(request.uses_beam for request in _take(1000, beam_share=share)) <= highest


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_that_is_none_is_refused_before_the_first_request(share: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        text_requests(CORPUS, "1", share)


def test_a_corpus_comes_from_any_folder(tmp_path: Path) -> None:
    (tmp_path / "sentences.txt").write_text("One two three.\n\nFour five six.\n", encoding="utf-8")
    (tmp_path / "paragraphs.txt").write_text("A b.\nC d.\n\n\nE f.\n", encoding="utf-8")
    expected = Corpus(("One two three.", "Four five six."), (("A b.", "C d."), ("E f.",)))
    assert load_corpus(tmp_path) == expected


def test_a_corpus_without_paragraphs_is_refused_with_the_counts(tmp_path: Path) -> None:
    (tmp_path / "sentences.txt").write_text("One two three.\n", encoding="utf-8")
    (tmp_path / "paragraphs.txt").write_text("\n", encoding="utf-8")
    with pytest.raises(ValueError, match="1 sentences and 0 paragraphs"):
        load_corpus(tmp_path)
