"""Limits on documents, without files: who is rejected, and which finished documents make room."""

from collections.abc import Iterator

import pytest

from server.documents.capacity import CapacityLimits, DocumentCapacity
from server.documents.formats.registry import format_of
from server.documents.jobs import JobStatus, StoredJob
from server.documents.steps import DocumentSize
from server.interface.client_identity import NO_LIMITS, ClientLimits, limits_of_client
from server.interface.errors import QueueFull


class Store:
    """Documents by name, and their capacity."""

    def __init__(self, max_documents: int = 10, max_of_client: int = 10, max_bytes: int = 1000) -> None:
        self.jobs: dict[str, StoredJob] = {}
        self.now = 100.0
        limits = CapacityLimits(max_documents, max_of_client, max_bytes)
        self.capacity = DocumentCapacity(limits, self.jobs.values, self._remove, lambda: self.now)

    def add(self, name: str, client: str, finished: float | None = None, num_bytes: int = 1) -> StoredJob:
        """Add a document."""
        self.jobs[name] = StoredJob(name, format_of("a.txt"), client)
        self.jobs[name].finished, self.jobs[name].num_bytes = finished, num_bytes
        return self.jobs[name]

    def _remove(self, job: StoredJob) -> None:
        del self.jobs[job.name]


@pytest.fixture(autouse=True)
def _no_limits() -> Iterator[None]:
    token = limits_of_client.set(NO_LIMITS)
    yield
    limits_of_client.reset(token)


def test_finished_documents_stay_while_there_is_room() -> None:
    store = Store(max_documents=4)
    for number in range(3):
        store.add(f"d{number}", "a", finished=float(number + 1))
    store.capacity.make_room("a", 10)
    assert set(store.jobs) == {"d0", "d1", "d2"}
    store.add("d3", "a", finished=9.0)
    store.capacity.make_room("a", 10)
    assert set(store.jobs) == {"d1", "d2", "d3"}


@pytest.mark.parametrize(
    ("own_limit", "left"),
    [
        (5, {"old", "mid", "new", "other", "open"}),
        (4, {"mid", "new", "other", "open"}),
        (2, {"other", "open"}),
    ],
)
def test_a_client_with_a_limit_loses_its_own_oldest_documents(own_limit: int, left: set[str]) -> None:
    store = Store()
    limits_of_client.set(ClientLimits(documents=own_limit))
    store.add("new", "a", finished=30.0)
    store.add("old", "a", finished=10.0)
    store.add("mid", "a", finished=20.0)
    store.add("other", "b", finished=1.0)
    store.add("open", "a")
    store.capacity.make_room("a", 0)
    assert set(store.jobs) == left


@pytest.mark.parametrize(("own_limit", "is_full"), [(None, False), (3, False), (2, True)])
def test_unfinished_documents_of_a_client_are_limited(own_limit: int | None, is_full: bool) -> None:
    store = Store(max_of_client=3)
    limits_of_client.set(ClientLimits(documents=own_limit))
    store.add("d0", "a")
    upload = store.capacity.begin_upload("a", 5)
    if is_full:
        with pytest.raises(QueueFull, match="this client has 2 of 2 unfinished documents"):
            store.capacity.make_room("a", 0)
        store.capacity.end_upload(upload)
    store.capacity.make_room("a", 0)
    store.capacity.make_room("b", 0)


def test_unfinished_documents_of_all_clients_are_limited() -> None:
    store = Store(max_documents=2)
    store.add("d0", "a")
    store.capacity.begin_upload("b", 5)
    with pytest.raises(QueueFull, match="the server has 2 of 2 unfinished documents"):
        store.capacity.make_room("c", 0)


def test_bytes_are_limited_unless_a_document_is_alone() -> None:
    store = Store(max_bytes=100)
    store.capacity.make_room("a", 1000)
    store.add("d0", "a", num_bytes=60)
    store.capacity.make_room("a", 40)
    with pytest.raises(QueueFull, match="unfinished documents have 60 of 100 bytes"):
        store.capacity.make_room("a", 41)
    store.add("old", "a", finished=1.0, num_bytes=20)
    store.add("new", "a", finished=2.0, num_bytes=20)
    store.capacity.make_room("a", 20)
    assert set(store.jobs) == {"d0", "new"}


def test_the_client_with_most_finished_documents_loses_its_oldest_one() -> None:
    store = Store(max_documents=4)
    store.add("b0", "b", finished=1.0)
    store.add("a0", "a", finished=3.0)
    store.add("a1", "a", finished=2.0)
    store.capacity.begin_upload("c", 1)
    store.capacity.make_room("c", 0)
    assert set(store.jobs) == {"b0", "a0"}


@pytest.mark.parametrize(("done", "seconds"), [(0, 10.0), (1, 1.0), (50, 50.0), (99_000, 3600.0)])
def test_a_rejection_has_the_time_to_the_first_end(done: int, seconds: float) -> None:
    store = Store(max_documents=1)
    job = store.add("d0", "a")
    job.status, job.begun = JobStatus.TRANSLATING, 99.0
    job.units_done, job.size = min(done, 1), DocumentSize(done + 1, 9)
    with pytest.raises(QueueFull) as rejected:
        store.capacity.make_room("b", 0)
    assert rejected.value.retry_after_seconds == seconds
