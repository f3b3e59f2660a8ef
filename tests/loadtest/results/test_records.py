from dataclasses import replace
from pathlib import Path

import pytest

from loadtest.results.records import BadRecord, Outcome, Record, RecordWriter, answer_digest, read_records

ANSWERED = Record(
    number=3,
    stage="steady",
    kind="sentence",
    protocol="native",
    worker=0,
    user=None,
    scheduled=1.5,
    sent=1.501,
    first_event=None,
    finished=1.75,
    outcome=Outcome.ANSWERED,
    status=200,
    reason="",
    source_tokens=12,
    source_tokens_estimated=False,
    target_tokens=13,
    num_sentences=1,
    num_texts=1,
    beam_size=None,
    phases_ms={"queue": 0.5, "decode": 40.25},
    event_gaps=(0.01, 0.02),
    retry_after=None,
    answer_sha256=answer_digest(["Hallo."]),
)
UNFINISHED = replace(ANSWERED, number=4, finished=None, outcome=Outcome.UNFINISHED, reason="the load test ended")


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    for part in ([ANSWERED], [], [UNFINISHED, ANSWERED]):
        with RecordWriter(path) as writer:
            writer.write(part)
    assert list(read_records(path)) == [ANSWERED, UNFINISHED, ANSWERED]


def test_latency_counts_from_the_instant_a_request_was_due() -> None:
    assert ANSWERED.latency == pytest.approx(0.25)
    assert ANSWERED.lag == pytest.approx(0.001)
    assert UNFINISHED.latency is None


@pytest.mark.parametrize("line", ["{}", "no", ANSWERED.to_json().replace('"answered"', '"lost"')])
def test_a_line_that_is_no_record_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(f"{ANSWERED.to_json()}\n{line}\n", encoding="utf-8")
    with pytest.raises(BadRecord, match="line 2"):
        list(read_records(path))
