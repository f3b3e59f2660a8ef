import pytest

from server.documents.formats.registry import format_of
from server.documents.jobs import JobStatus, StoredJob
from server.documents.steps import DocumentSize


def _job(status: JobStatus, done: int, total: int) -> StoredJob:
    job = StoredJob("a.txt", format_of("a.txt"), "client")
    job.status, job.units_done, job.size, job.begun = status, done, DocumentSize(total, 700), 100.0
    return job


@pytest.mark.parametrize(
    ("status", "done", "total", "progress", "remaining"),
    [
        (JobStatus.QUEUED, 0, 0, 0.0, None),
        (JobStatus.TRANSLATING, 0, 40, 0.0, None),
        (JobStatus.TRANSLATING, 10, 40, 0.25, 90.0),
        (JobStatus.TRANSLATING, 40, 40, 1.0, 0.0),
        (JobStatus.DONE, 0, 0, 1.0, None),
        (JobStatus.ERROR, 10, 40, 0.25, None),
    ],
)
def test_the_rest_takes_as_long_for_a_unit_as_before(
    status: JobStatus, done: int, total: int, progress: float, remaining: float | None
) -> None:
    state = _job(status, done, total).state(130.0)
    assert (state.progress, state.seconds_remaining) == (progress, remaining)
    assert (state.status, state.units_done, state.num_units, state.num_characters) == (status, done, total, 700)
