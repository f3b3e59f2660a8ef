"""Limits on documents in all and by client, and folders that killed processes left behind."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from server.documents.input.uploads import WorkFolder, remove_abandoned_folders
from server.documents.job_store import DocumentStore, StoreOptions
from server.documents.jobs import JobStatus
from server.documents.rewriting import Translate
from server.documents.steps import DocumentSize
from server.interface.client_identity import client_of_call
from server.interface.errors import QueueFull, UnknownDocument
from tests.fakes.engine import FakeClock
from tests.server.documents.documents import loud
from tests.server.documents.test_job_store import LETTER, Gate, run


def test_a_finished_document_of_the_client_with_most_is_removed_first(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = FakeClock()
        store = DocumentStore(StoreOptions(max_documents=4, folder=tmp_path), clock=clock)
        ids: dict[str, list[str]] = {"modest": [], "greedy": []}
        for client in ("modest", "greedy", "greedy", "greedy", "greedy"):
            client_of_call.set(client)
            ids[client].append((await store.submit("a.txt", io.BytesIO(LETTER), Translate(loud))).id)
            await store.wait(ids[client][-1])
            clock.now += 1
        assert store.get(ids["modest"][0]).status is JobStatus.DONE
        with pytest.raises(UnknownDocument):
            store.get(ids["greedy"][0])
        assert store.get(ids["greedy"][1]).status is JobStatus.DONE
        await store.close()

    run(scenario)


def test_documents_of_one_client_and_the_bytes_of_all_are_limited(tmp_path: Path) -> None:
    async def scenario() -> None:
        options = StoreOptions(max_of_client=2, max_bytes=1000, folder=tmp_path)
        store = DocumentStore(options)
        uploads = [store.capacity.begin_upload("greedy", 100) for _ in range(2)]
        with pytest.raises(QueueFull, match="this client has 2 of 2 unfinished documents"):
            store.capacity.begin_upload("greedy", 100)
        with pytest.raises(QueueFull, match="200 of 1000 bytes"):
            store.capacity.begin_upload("modest", 801)
        store.capacity.end_upload(store.capacity.begin_upload("modest", 800))
        for upload in uploads:
            store.capacity.end_upload(upload)
        store.capacity.begin_upload("greedy", 5000)
        await store.close()

    run(scenario)


def test_a_rejection_states_when_the_first_document_will_be_done(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = FakeClock()
        store = DocumentStore(StoreOptions(max_documents=1, folder=tmp_path), clock=clock)
        first = await store.submit("a.txt", io.BytesIO(LETTER), Translate(Gate().translate))
        job = store._jobs[first.id]
        job.status, job.begun, job.units_done, job.size = JobStatus.TRANSLATING, clock.now, 10, DocumentSize(50, 500)
        clock.now += 5
        with pytest.raises(QueueFull) as refused:
            await store.submit("b.txt", io.BytesIO(LETTER), Translate(loud))
        assert refused.value.retry_after_seconds == 20
        await store.close()

    run(scenario)


_OWNER = """
import sys
from pathlib import Path
from server.documents.input.uploads import WorkFolder
folder = WorkFolder(Path(sys.argv[1]))
(folder.path / "source").write_bytes(b"letter")
print(folder.path, flush=True)
sys.stdin.read()
"""


def test_the_folder_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    (tmp_path / "kvasir-documents-notes").mkdir()
    # Numbers of processes are used again: this one belongs to a process that lives, and the folder to none.
    (tmp_path / f"kvasir-documents-{os.getppid()}-x").mkdir()
    (tmp_path / f"kvasir-documents-{os.getpid()}-y").symlink_to(tmp_path / "kvasir-documents-notes")
    command = [sys.executable, "-c", _OWNER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        theirs = Path(owner.stdout.readline().strip())
        ours = WorkFolder(tmp_path)
        assert (theirs / "source").exists()
        assert not (tmp_path / f"kvasir-documents-{os.getppid()}-x").exists()
        owner.kill()
        owner.wait()
    remove_abandoned_folders(tmp_path)
    assert not theirs.exists()
    assert ours.path.exists()
    ours.close()
    assert {path.name for path in tmp_path.iterdir()} == {"kvasir-documents-notes", f"kvasir-documents-{os.getpid()}-y"}
