import pytest

from loadtest.sending.answer_headers import retry_after_seconds, server_timing


@pytest.mark.parametrize(
    ("header", "durations"),
    [
        ("", {}),
        ("tokenize;dur=0.25, queue;dur=12, total;dur=40.5", {"tokenize": 0.25, "queue": 12.0, "total": 40.5}),
        ('cache;desc="hit, warm", db;dur="3.5";desc=x', {"db": 3.5}),
        ("a;dur=soon,b;DUR=1", {"b": 1.0}),
    ],
)
def test_the_durations_of_server_timing_are_read(header: str, durations: dict[str, float]) -> None:
    assert server_timing(header) == durations


@pytest.mark.parametrize(
    ("header", "seconds"),
    [(None, None), ("2", 2.0), ("0.5", 0.5), ("-1", 0.0), ("Wed, 21 Oct 2026 07:28:00 GMT", None)],
)
def test_retry_after_is_a_number_of_seconds_or_nothing(header: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(header) == seconds
