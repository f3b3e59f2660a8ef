"""Download of a registry of models in Mozilla's formats."""

import json
from pathlib import Path
from urllib.parse import urljoin

from library.home import Home
from library.mozilla import RegistryModel, parse_registry
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.download import RemoteFile, download
from model.temporary_folders import temporary_folder

REGISTRY_FILES = ("models.json", "records.json")
"""Names of a registry in a folder."""


def read_registry(address: str, home: Home) -> list[RegistryModel]:
    """Return the models of a registry: a file, its URL, or the folder of a registry, whose address ends with a slash.

    Files of models are next to the registry, unless it names another address. Raises `CheckpointError`, and OSError for
    a file.
    """
    if not address.startswith(("http://", "https://")):
        path = Path(address)
        if path.is_dir():
            path = next((path / name for name in REGISTRY_FILES if (path / name).is_file()), path / REGISTRY_FILES[0])
        return parse_registry(_read_json(path, str(path)), str(path.resolve().parent))
    with temporary_folder(home.root, ".registry-") as temporary:
        if address.endswith("/"):
            return _read_first([address + name for name in REGISTRY_FILES], temporary)
        return _read_url(address, temporary)


def _read_first(addresses: list[str], temporary: Path) -> list[RegistryModel]:
    """Return the models of the first registry that can be read; raise the error of the first one if none can."""
    first, *others = addresses
    try:
        return _read_url(first, temporary)
    except CheckpointError:
        for other in others:
            try:
                return _read_url(other, temporary)
            except CheckpointError:
                continue
        raise


def _read_url(address: str, temporary: Path) -> list[RegistryModel]:
    content = _read_json(download(RemoteFile(address), temporary / Path(address).name), address)
    root, is_settings, _ = address.partition("/v1/")
    if not is_settings or not isinstance(content, dict) or "data" not in content:
        return parse_registry(content, urljoin(address, "."))
    # The root of Remote Settings names the address of attachments.
    root_address = f"{root}/v1/"
    match _read_json(download(RemoteFile(root_address), temporary / "root.json"), root_address):
        case {"capabilities": {"attachments": {"base_url": str(base)}}}:
            return parse_registry(content, base)
        case _:
            raise CheckpointError(f"{root_address} must name `capabilities.attachments.base_url`")


def _read_json(path: Path, address: str) -> object:
    try:
        return json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{address} is not JSON: {error}") from error
