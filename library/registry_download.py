"""Download of a registry of models in Mozilla's formats."""

import json
from pathlib import Path

from library.home import Home
from library.mozilla import RegistryModel, parse_registry
from model.checkpoints.download import RemoteFile, download
from model.checkpoints.errors import CheckpointError
from model.temporary_folders import temporary_folder


def read_registry(address: str, home: Home) -> list[RegistryModel]:
    """Return the models of a registry, a URL or a file. Raises `CheckpointError`, and OSError for a file."""
    if not address.startswith(("http://", "https://")):
        return parse_registry(_read_json(Path(address), address), "")
    with temporary_folder(home.root, ".registry-") as temporary:
        content = _read_json(download(RemoteFile(address), temporary / "registry.json"), address)
        base, is_settings, _ = address.partition("/v1/")
        if is_settings and isinstance(content, dict) and "data" in content:
            # The root of Remote Settings names the address of attachments.
            root_address = f"{base}/v1/"
            match _read_json(download(RemoteFile(root_address), temporary / "root.json"), root_address):
                case {"capabilities": {"attachments": {"base_url": str(base)}}}:
                    pass
                case _:
                    raise CheckpointError(f"{root_address} must name `capabilities.attachments.base_url`")
    return parse_registry(content, base)


def _read_json(path: Path, address: str) -> object:
    try:
        return json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{address} is not JSON: {error}") from error
