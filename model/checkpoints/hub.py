"""Models on the Hugging Face hub: choice of files, download, and a check of each file; without torch.

`huggingface_hub` reads HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE and HF_HOME, and keeps the files in its cache. It does not
continue a large download of an earlier process; this module does.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from model.checkpoints.archives import sha256_of
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.download import Progress, RemoteFile, download, no_progress

if TYPE_CHECKING:
    from huggingface_hub.hf_api import ModelInfo, RepoSibling

# Settings, tokenizers, vocabularies, the model card; code of a tokenizer is never run, its name is a sign of SMaLL-100.
_SMALL_FILES: Final = (
    "*.json",
    "*.spm",
    "*.model",
    "*vocabulary.txt",
    "merges.txt",
    "vocab.yml",
    "README.md",
    "tokenization_*.py",
)
# Weights in order of preference; one row is enough. safetensors cannot contain code; pickled weights are read without
# running any. A bundle and a CTranslate2 model contain plain numbers.
_WEIGHTS: Final = (
    ("bundle.json", ("*.onnx", "*.onnx_data", "*.data")),
    ("model.safetensors", ("model.safetensors",)),
    ("model.safetensors.index.json", ("model-*-of-*.safetensors",)),
    ("model.bin", ("model.bin",)),
    ("pytorch_model.bin", ("pytorch_model.bin",)),
    ("pytorch_model.bin.index.json", ("pytorch_model-*-of-*.bin",)),
)
_MEGABYTE: Final = 1e6


@dataclass(frozen=True, slots=True)
class HubModel:
    """A downloaded model. `licence` is the one that its model card names."""

    path: Path
    name: str
    commit: str
    licence: str | None
    address: str


def choose_files(names: Iterable[str]) -> list[str]:
    """Return the files of a repository to download: settings, tokenizer, and weights in one format.

    Files in folders are left out. Raises `CheckpointError` if no weights are in a supported format.
    """
    top_level = sorted(name for name in names if "/" not in name)
    weights = next((patterns for sign, patterns in _WEIGHTS if sign in top_level), ())
    chosen = [name for name in top_level if any(fnmatchcase(name, pattern) for pattern in (*_SMALL_FILES, *weights))]
    if not any(fnmatchcase(name, pattern) for name in chosen for pattern in weights):
        supported = ", ".join(sign for sign, _ in _WEIGHTS)
        raise CheckpointError(f"no weights in a supported format ({supported}). Available: {', '.join(top_level)}")
    return chosen


def download_model(
    hub_name: str, report: Callable[[str], None] = lambda _: None, progress: Progress = no_progress
) -> HubModel:
    """Download a model, or find it in the hub's cache. `report` receives a line before a download.

    Raises `CheckpointError` with the cause and the remedy.
    """
    try:
        import httpx2
        from huggingface_hub import HfApi, constants, snapshot_download
        from huggingface_hub.errors import (
            GatedRepoError,
            HfHubHTTPError,
            HFValidationError,
            LocalEntryNotFoundError,
            RepositoryNotFoundError,
        )
    except ImportError as error:
        raise CheckpointError(
            f"{hub_name}: no such folder; to download it from the hub, install huggingface_hub"
        ) from error
    address = f"{constants.ENDPOINT}/{hub_name}"
    try:
        if constants.HF_HUB_OFFLINE:
            return _cached(hub_name, address)
        try:
            info = HfApi().model_info(hub_name, files_metadata=True)
        except (httpx2.ConnectError, httpx2.TimeoutException):
            return _cached(hub_name, address)
        siblings = {sibling.rfilename: sibling for sibling in info.siblings or ()}
        try:
            chosen = choose_files(siblings)
        except CheckpointError as error:
            raise CheckpointError(f"{address}: {error}") from error
        _announce(hub_name, info, [siblings[name] for name in chosen], report)
        for name in chosen:
            _download_large_file(hub_name, siblings[name], info.sha, progress)
        path = Path(snapshot_download(hub_name, allow_patterns=chosen))
    except GatedRepoError as error:
        raise CheckpointError(
            f"{hub_name} is gated; accept its conditions at {address} and set HF_TOKEN to a token of that account"
        ) from error
    except RepositoryNotFoundError as error:
        raise CheckpointError(
            f"{hub_name} is neither a folder nor available from the hub ({constants.ENDPOINT}): no such model, or a "
            "private one; set HF_TOKEN for the latter"
        ) from error
    except HFValidationError as error:
        raise CheckpointError(
            f"{hub_name} does not exist; name a folder, a file or a model of the hub such as Helsinki-NLP/opus-mt-en-fr"
        ) from error
    except (HfHubHTTPError, LocalEntryNotFoundError, httpx2.HTTPError, OSError) as error:
        reason = str(error.__cause__ or error).partition("\n")[0]
        raise CheckpointError(f"{hub_name} is neither a folder nor available from the hub: {reason}") from error
    _check_files(path, hub_name, [siblings[name] for name in chosen])
    return HubModel(path, hub_name, path.name, _licence(info) or card_licence(path), address)


def card_licence(folder: Path) -> str | None:
    """Return the licence in the head of a model card, or None."""
    try:
        lines = (folder / "README.md").read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return None
    if not lines or lines[0].strip() != "---":
        return None
    for line in lines[1:]:
        if line.strip() == "---":
            return None
        name, _, value = line.partition(":")
        if name == "license" and value.strip():
            return value.strip().strip("\"'")
    return None


def _cached(hub_name: str, address: str) -> HubModel:
    """Return a model that an earlier download left in the hub's cache; raise `CheckpointError` without one."""
    from huggingface_hub import constants, try_to_load_from_cache

    for name in ("config.json", "bundle.json"):
        found = try_to_load_from_cache(hub_name, name)
        if isinstance(found, str):
            path = Path(found).parent
            choose_files(file.name for file in path.iterdir())
            return HubModel(path, hub_name, path.name, card_licence(path), address)
    reason = "HF_HUB_OFFLINE is set; unset it to download" if constants.HF_HUB_OFFLINE else "it cannot be reached"
    raise CheckpointError(
        f"{hub_name} is neither a folder nor in the cache, and the hub ({constants.ENDPOINT}) is not used: {reason}"
    )


def _licence(info: "ModelInfo") -> str | None:
    licence = info.card_data.get("license") if info.card_data else None
    return licence if isinstance(licence, str) else None


def _announce(hub_name: str, info: "ModelInfo", files: "Sequence[RepoSibling]", report: Callable[[str], None]) -> None:
    from huggingface_hub import try_to_load_from_cache

    missing = [
        file
        for file in files
        if not isinstance(try_to_load_from_cache(hub_name, file.rfilename, revision=info.sha), str)
    ]
    licence = _licence(info) or "not stated"
    if missing:
        size = sum(file.size or 0 for file in missing) / _MEGABYTE
        report(f"downloading {hub_name}: {len(missing)} files, {size:.1f} MB, licence: {licence}")
    else:
        report(f"{hub_name} is downloaded, licence: {licence}")


def _download_large_file(hub_name: str, file: "RepoSibling", commit: str | None, progress: Progress) -> None:
    """Download a file of Git LFS to its place in the hub's cache, where `snapshot_download` finds it."""
    from huggingface_hub import constants, get_hf_file_metadata, get_token, hf_hub_url
    from huggingface_hub.file_download import repo_folder_name

    if not isinstance(file.lfs, Mapping):
        return
    blobs = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=hub_name, repo_type="model") / "blobs"
    digest = str(file.lfs["sha256"])
    if (blobs / digest).is_file():
        return
    url = hf_hub_url(hub_name, file.rfilename, revision=commit)
    metadata = get_hf_file_metadata(url)
    if metadata.etag != digest:
        return
    # A CDN on another host must not receive the token.
    token = get_token() if urlsplit(metadata.location).netloc == urlsplit(url).netloc else None
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    remote = RemoteFile(metadata.location, file.size, digest, headers)
    download(remote, blobs / digest, lambda _, done, size: progress(file.rfilename, done, size))


def _check_files(folder: Path, hub_name: str, files: "Iterable[RepoSibling]") -> None:
    """Raise `CheckpointError` unless each file has the size and the hash that the hub lists; delete wrong ones."""
    wrong = [file.rfilename for file in files if not _is_whole(folder / file.rfilename, file)]
    for name in wrong:
        # The cache has a link to a blob; both go, so that the next download begins anew.
        (folder / name).resolve().unlink(missing_ok=True)
        (folder / name).unlink(missing_ok=True)
    if wrong:
        raise CheckpointError(
            f"{hub_name}: size or hash differs from the hub's list: {', '.join(wrong)}; deleted, download again"
        )


def _is_whole(path: Path, file: "RepoSibling") -> bool:
    if not path.is_file() or (file.size is not None and path.stat().st_size != file.size):
        return False
    # The hub has the SHA-256 of large files and Git's hash of small ones.
    if isinstance(file.lfs, Mapping) and file.lfs.get("sha256"):
        return sha256_of(path) == str(file.lfs["sha256"])
    if file.blob_id:
        content = path.read_bytes()
        return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest() == file.blob_id
    return True
