"""Memory after changes of models, glossaries, API keys, and names that clients make up.

`python -m tests.faults.memory_returns` prints the proportional memory (PSS) of a server with its processes after each
stage, and exits with 1 if it has grown by more than `--megabytes` since the first model was replaced.
"""

import argparse
import secrets
import shutil
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2
import psutil

from server.operations.api_keys.key_file import KeyFile, KeyLimits
from server.operations.defaults import DEFAULT_MODEL
from tests.end_to_end.servers import PATIENCE_SECONDS, Served, started

_TEXT = {"text": "The house is old.", "source": "en", "target": "de"}
_NUM_CHANGES, _NUM_GLOSSARIES, _NUM_KEYS, _NUM_NAMES = 30, 1000, 1000, 3000
_ENTRIES = 100
_FILE_SECONDS = 2.5  # until a server has read new keys


def _megabytes(served: Served) -> float:
    server = psutil.Process(served.process.pid)
    processes = [server, *server.children(recursive=True)]
    return float(sum(process.memory_full_info().pss for process in processes)) / 1e6


def _change_models(admin: httpx2.Client, client: httpx2.Client, folders: tuple[Path, Path], number: int) -> None:
    for index in range(number):
        answer = admin.post("/admin/models", json={"folder": str(folders[index % 2])})
        assert answer.json()["outcome"] == "replaced", answer.text
        assert client.post("/v1/translate", json=_TEXT).status_code == 200


def _change_glossaries(client: httpx2.Client) -> None:
    for number in range(_NUM_GLOSSARIES):
        entries = "\n".join(f"term {number} {entry}\tWort {number} {entry}" for entry in range(_ENTRIES))
        fields = {"name": secrets.token_hex(20), "source_lang": "en", "target_lang": "de", "entries_format": "tsv"}
        made = client.post("/v2/glossaries", json=fields | {"entries": entries}).json()["glossary_id"]
        use = {"text": ["Tea."], "source_lang": "EN", "target_lang": "DE", "glossary_id": made}
        assert client.post("/v2/translate", json=use).status_code == 200
        assert client.delete(f"/v2/glossaries/{made}").status_code == 204


def _use_keys(served: Served, file: KeyFile) -> None:
    limits = KeyLimits(requests_per_minute=1000, characters_per_day=1_000_000)
    keys = [file.add(secrets.token_hex(40), limits)[1] for _ in range(_NUM_KEYS)]
    time.sleep(_FILE_SECONDS)
    with served.client() as client:
        for key in keys:
            assert client.post("/v1/translate", json=_TEXT, headers={"Authorization": f"Bearer {key}"}).is_success


def _make_up_names(served: Served, key: str) -> None:
    with served.client() as client:
        for number in range(_NUM_NAMES):
            name = secrets.token_hex(60)
            sent = key if number % 2 else f"kvasir-{name[:8]}-{name}"
            headers = {
                "Authorization": f"Bearer {sent}",
                "X-Request-ID": name,
                "traceparent": f"00-{name[:32]}-{name[:16]}-01",
                "Host": f"{name}.localhost",
                "User-Agent": name,
            }
            client.post("/v1/translate", json={"text": "a", "target": name[:9], "model": name}, headers=headers)
            client.get(f"/{name}", params={name: name})
            client.delete(f"/v1/documents/{name}", headers=headers)


def run(folder: Path, write: Callable[[str], object]) -> float:
    """Return the growth of the server in megabytes."""
    folders = folder / "one", folder / "other"
    for each in folders:
        shutil.copytree(DEFAULT_MODEL, each)
    file = KeyFile(folder / "keys.sqlite")
    _, key = file.add("first", KeyLimits())
    flags = ("--api-keys", str(folder / "keys.sqlite"), "--glossary-file", str(folder / "glossaries.sqlite"))
    growth = 0.0
    for served in started("--model", str(folders[1]), "--admin-port", "0", "--threads", "1", *flags):
        [line] = [line for line in served.lines if line["message"] == "listening for administration"]
        admin = httpx2.Client(base_url=str(line["url"]), timeout=PATIENCE_SECONDS)
        client = httpx2.Client(
            base_url=served.url, timeout=PATIENCE_SECONDS, headers={"Authorization": f"Bearer {key}"}
        )
        with admin, client:
            _change_models(admin, client, folders, 2)
            first = _megabytes(served)
            stages: dict[str, Callable[[], None]] = {
                f"{_NUM_CHANGES} changes of models": partial(_change_models, admin, client, folders, _NUM_CHANGES),
                f"{_NUM_GLOSSARIES} glossaries made, used and deleted": partial(_change_glossaries, client),
                f"requests of {_NUM_KEYS} keys": partial(_use_keys, served, file),
                f"{_NUM_NAMES} made-up names of everything": partial(_make_up_names, served, key),
            }
            write(f"at first: {first:.0f} MB\n")
            for name, act in stages.items():
                act()
                growth = _megabytes(served) - first
                write(f"{name}: {growth:+.0f} MB\n")
    return growth


def main() -> int:
    """Run the stages as a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=25)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        return int(run(Path(folder), sys.stdout.write) > options.megabytes)


if __name__ == "__main__":
    raise SystemExit(main())
