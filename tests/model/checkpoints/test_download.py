import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.download import RemoteFile, download
from tests.fakes.hub_server import HubServer, hub_server

CONTENT = bytes(range(256)) * 40
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(scope="module")
def running() -> Iterator[HubServer]:
    with hub_server() as server:
        yield server


@pytest.fixture
def server(running: HubServer) -> HubServer:
    running.plain_files["/file.bin"] = CONTENT
    running.requests.clear()
    running.bodies_to_cut.clear()
    running.is_without_ranges = False
    return running


def _ranges(server: HubServer) -> list[str | None]:
    return [headers.get("Range") for _, _, headers in server.requests]


def test_a_cut_connection_is_continued(server: HubServer, tmp_path: Path) -> None:
    server.bodies_to_cut += [1000, 2000, 0]
    waits: list[float] = []
    path = download(RemoteFile(f"{server.address}/file.bin"), tmp_path / "got", wait=waits.append)
    assert path.read_bytes() == CONTENT
    assert _ranges(server) == [None, "bytes=1000-", "bytes=3000-", "bytes=3000-"]
    assert waits == [1, 1, 2]
    assert [file.name for file in tmp_path.iterdir()] == ["got"]


def test_a_server_without_ranges_sends_the_whole_file_again(server: HubServer, tmp_path: Path) -> None:
    server.bodies_to_cut.append(1000)
    server.is_without_ranges = True
    file = RemoteFile(f"{server.address}/file.bin", sha256=DIGEST)
    assert download(file, tmp_path / "got", wait=lambda _: None).read_bytes() == CONTENT


def test_a_file_that_changed_meanwhile_is_downloaded_anew(server: HubServer, tmp_path: Path) -> None:
    file = RemoteFile(f"{server.address}/file.bin")
    server.bodies_to_cut += [5000, 0, 0, 0, 0, 0]
    with pytest.raises(CheckpointError, match="was interrupted"):
        download(file, tmp_path / "got", wait=lambda _: None)
    changed = server.plain_files["/file.bin"] = CONTENT[::-1]
    assert download(file, tmp_path / "got", wait=lambda _: None).read_bytes() == changed


@pytest.mark.parametrize(
    ("path", "size", "sha256", "message"),
    [
        ("/file.bin", None, "0" * 64, "its SHA-256 must be 0000"),
        ("/file.bin", 10241, None, r"it must have 10241 bytes\. Given: 10240"),
        ("/file.bin", 9, None, r"it must have 9 bytes\. Given: 10240"),
        ("/nothing", None, None, r"does not exist \(HTTP 404\)"),
    ],
)
def test_another_content_is_an_error_and_leaves_no_file(
    server: HubServer, tmp_path: Path, path: str, size: int | None, sha256: str | None, message: str
) -> None:
    with pytest.raises(CheckpointError, match=message):
        download(RemoteFile(f"{server.address}{path}", size, sha256), tmp_path / "got", wait=lambda _: None)
    assert not (tmp_path / "got").exists()


def test_of_several_processes_one_downloads(server: HubServer, tmp_path: Path) -> None:
    file = RemoteFile(f"{server.address}/file.bin", sha256=DIGEST)
    threads = [threading.Thread(target=download, args=(file, tmp_path / "got")) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "got").read_bytes() == CONTENT
    assert len(server.requests) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["got"]
