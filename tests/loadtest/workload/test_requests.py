import hashlib
from collections import Counter
from pathlib import Path

import pytest

from loadtest.workload.requests import TextRequest, request_sequence, with_corpus_digest
from loadtest.workload.scenario import Kind, Scenario, ScenarioInvalid, Stage, Workload, load_scenario
from loadtest.workload.texts.lengths import length_distribution


def _scenario(*kinds: Kind, workload: Workload | None = None) -> Scenario:
    stages = (Stage(name="one", seconds=10, rate=10), Stage(name="two", seconds=10, rate=10))
    return Scenario(
        name="test", description="", kinds=kinds, stages=stages, workload=workload or Workload(), search=None
    )


SENTENCES = _scenario(Kind(name="sentence"))


def _take(scenario: Scenario, num_requests: int, seed: int = 1, stage: str = "one") -> list[TextRequest]:
    request = request_sequence(scenario, seed, stage)
    return [request(number) for number in range(num_requests)]


def test_a_request_is_the_same_in_every_process_and_order() -> None:
    in_order = _take(load_scenario("smoke"), 300, stage="open")
    another_worker = request_sequence(load_scenario("smoke"), 1, "open")
    assert [another_worker(number) for number in reversed(range(300))] == in_order[::-1]
    assert [request.number for request in in_order] == list(range(300))


@pytest.mark.parametrize(("name", "language"), [("tatoeba", "en"), ("news", "en"), ("heavy-tailed", "de")])
def test_sent_lengths_follow_the_distribution(name: str, language: str) -> None:
    scenario = _scenario(Kind(name="sentence"), workload=Workload(lengths=name, source=language, target="fr"))
    requests = _take(scenario, 5000)
    counted = Counter(request.num_words for request in requests)
    stated = length_distribution(name, language)
    distance = sum(abs(counted[length] / 5000 - stated.share(length)) for length in range(1, 61)) / 2
    assert distance < 0.04
    assert max(counted) <= 60


def test_kinds_come_as_often_as_their_weights_say() -> None:
    scenario = _scenario(Kind(name="a", weight=6), Kind(name="b", weight=3, beam_size=4), Kind(name="c", weight=1))
    requests = _take(scenario, 5000)
    counted = Counter(request.kind for request in requests)
    assert [counted[name] / 5000 for name in "abc"] == pytest.approx([0.6, 0.3, 0.1], abs=0.025)
    assert {request.beam_size for request in requests if request.kind == "b"} == {4}
    assert {request.beam_size for request in requests if request.kind != "b"} == {None}


def test_lists_and_paragraphs_have_the_requested_number_of_sentences() -> None:
    scenario = _scenario(Kind(name="list", text="list"), Kind(name="paragraph", text="paragraph"))
    requests = _take(scenario, 1000)
    lists = [request for request in requests if request.kind == "list"]
    paragraphs = [request for request in requests if request.kind == "paragraph"]
    assert {len(request.texts) for request in lists} == {request.num_sentences for request in lists} == set(range(2, 9))
    assert {len(request.texts) for request in paragraphs} == {1}
    assert {request.num_sentences for request in paragraphs} == set(range(3, 9))
    assert all(request.is_list for request in lists)
    assert not any(request.is_list for request in paragraphs)


def test_only_impatient_clients_disconnect_and_within_their_limits() -> None:
    requests = _take(load_scenario("impatient"), 3000, stage="busy")
    moments = [request.hang_up_after_seconds for request in requests if request.hang_up_after_seconds is not None]
    assert len(moments) / 3000 == pytest.approx(0.1, abs=0.02)
    assert min(moments) >= 0.02
    assert max(moments) <= 0.3
    assert max(moments) - min(moments) > 0.2


def test_repeats_have_the_requested_share_and_a_few_texts_are_frequent() -> None:
    scenario = _scenario(Kind(name="sentence"), workload=Workload(repeats=0.8))
    texts = [request.texts for request in _take(scenario, 5000)]
    counted = Counter(texts)
    assert len(counted) / 5000 == pytest.approx(0.2, abs=0.02)
    assert counted.most_common(1)[0][1] > 50
    assert sum(count == 1 for count in counted.values()) > len(counted) / 2


def test_a_corpus_is_sent_line_for_line_before_any_comes_again(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    lines = [f"Line \u2028 {number}." for number in range(100)]  # Unicode line separators do not divide it
    path.write_text("\n\n".join(lines), encoding="utf-8")
    scenario = SENTENCES.with_overrides(corpus=path)
    texts = [request.texts[0] for request in _take(scenario, 200)]
    assert sorted(texts[:100]) == sorted(lines)
    assert texts[:100] == texts[100:]
    assert texts[:100] != lines


def test_a_corpus_is_identified_by_its_lines_and_another_is_rejected(tmp_path: Path) -> None:
    path, copy, other = tmp_path / "mine.txt", tmp_path / "copy.txt", tmp_path / "other.txt"
    path.write_bytes(b"One.\nTwo.\n")
    copy.write_bytes(b"One.\r\n\r\nTwo.")
    other.write_bytes(b"One.\nThree.\n")
    known = with_corpus_digest(SENTENCES.with_overrides(corpus=path))
    assert known.workload.corpus_sha256 == hashlib.sha256(b"One.\nTwo.").hexdigest()
    assert with_corpus_digest(SENTENCES) == SENTENCES

    def sent(corpus: Path) -> Scenario:
        return known.model_copy(update={"workload": known.workload.model_copy(update={"corpus": str(corpus)})})

    assert _take(sent(copy), 2)
    with pytest.raises(ScenarioInvalid, match=r"other\.txt differs from the scenario's: its sha256 must be "):
        request_sequence(sent(other), 1, "one")
    # An explicit file takes precedence.
    assert _take(known.with_overrides(corpus=other), 2)


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (Workload(source="fr", lengths="heavy-tailed"), "no grammar for fr; available: de, en, or pass --corpus"),
        (Workload(source="fr"), "lengths tatoeba have no language fr; available: de, en"),
        (Workload(corpus="nowhere.txt"), "nowhere.txt"),
    ],
)
def test_invalid_workloads_are_rejected_before_the_first_request(workload: Workload, message: str) -> None:
    with pytest.raises(ScenarioInvalid, match=message):
        request_sequence(_scenario(Kind(name="sentence"), workload=workload), 1, "one")
