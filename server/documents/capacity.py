"""Limits on the number and the bytes of documents, in all and by client. Finished documents make room for new ones."""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass

from server.documents.jobs import StoredJob
from server.interface.client_identity import limits_of_client
from server.interface.errors import QueueFull

_RETRY_SECONDS = 10.0  # while no document has an estimated end
_MAX_RETRY_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, eq=False)
class Upload:
    """A document whose body is being received: at most `num_bytes`."""

    client: str
    num_bytes: int


@dataclass(frozen=True, slots=True)
class CapacityLimits:
    """`max_documents` documents of all clients and `max_of_client` of each one, and `max_bytes` of all files."""

    max_documents: int
    max_of_client: int
    max_bytes: int


class DocumentCapacity:
    """Admission of documents. `jobs` are those of the store, and `remove` deletes a finished one."""

    def __init__(
        self,
        limits: CapacityLimits,
        jobs: Callable[[], Collection[StoredJob]],
        remove: Callable[[StoredJob], None],
        clock: Callable[[], float],
    ) -> None:
        self._limits = limits
        self._jobs = jobs
        self._remove = remove
        self._clock = clock
        self._uploads: set[Upload] = set()

    def begin_upload(self, client: str, num_bytes: int) -> Upload:
        """Count an upload as a document. Raises `QueueFull` as `make_room` does."""
        self.make_room(client, num_bytes)
        upload = Upload(client, num_bytes)
        self._uploads.add(upload)
        return upload

    def end_upload(self, upload: Upload) -> None:
        """Count an upload that was received or interrupted."""
        self._uploads.discard(upload)

    def make_room(self, client: str, num_bytes: int) -> None:
        """Remove finished documents until another one fits, those of this client first if it has too many.

        Raises `QueueFull` if too many are unfinished, in all or of this client, or if their files are too large. The
        only document of all may be larger than the limit of all files.
        """
        limits, unfinished = self._limits, [job for job in self._jobs() if job.finished is None]
        pending: list[StoredJob | Upload] = [*unfinished, *self._uploads]
        clients = Counter([each.client for each in pending])
        own_limit = limits_of_client.get().documents
        max_unfinished = limits.max_of_client if own_limit is None else min(limits.max_of_client, own_limit)
        if clients[client] >= max_unfinished:
            raise self._full(f"this client has {clients[client]} of {max_unfinished} unfinished documents")
        if clients.total() >= limits.max_documents:
            raise self._full(f"the server has {clients.total()} of {limits.max_documents} unfinished documents")
        held = sum([each.num_bytes for each in pending])
        if held and held + num_bytes > limits.max_bytes:
            raise self._full(f"unfinished documents have {held} of {limits.max_bytes} bytes")
        if own_limit is not None:
            done = [job for job in self._jobs() if job.finished is not None and job.client == client]
            for job in sorted(done, key=lambda job: job.finished or 0.0)[
                : max(len(done) + clients[client] + 1 - own_limit, 0)
            ]:
                self._remove(job)
        while len(self._jobs()) + len(self._uploads) >= limits.max_documents or (
            self._num_bytes() + num_bytes > limits.max_bytes
        ):
            finished = [job for job in self._jobs() if job.finished is not None]
            if not finished:
                return
            # The oldest one of the client that has most, so that one client does not displace the others.
            kept = Counter([job.client for job in finished])
            self._remove(min(finished, key=lambda job: (-kept[job.client], job.finished)))

    def _num_bytes(self) -> int:
        everything: list[StoredJob | Upload] = [*self._jobs(), *self._uploads]
        return sum([each.num_bytes for each in everything])

    def _full(self, reason: str) -> QueueFull:
        now = self._clock()
        estimates = [remaining for job in self._jobs() if (remaining := job.seconds_remaining(now)) is not None]
        seconds = min(max(min(estimates, default=_RETRY_SECONDS), 1.0), _MAX_RETRY_SECONDS)
        return QueueFull(f"{reason}; retry in {seconds:.0f} s", seconds)
