"""`kvasir pull`: from the name of a model to a bundle in the cache, downloaded and converted at most once."""

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bundle.loading import load_bundle, save_manifest
from bundle.manifest import MANIFEST_FILE, BundleConfig, BundleError
from bundle.model_card import CARD_FILE
from bundle.tensors import Precision
from library.home import Home, Origin
from library.names import ModelName, parse_name
from model.checkpoints.archives import extract, is_archive
from model.checkpoints.download import Progress, RemoteFile, download, no_progress
from model.checkpoints.hub import card_licence, download_model

Report = Callable[[str], None]
_MAX_LISTED_LANGUAGES = 8


@dataclass(frozen=True, slots=True)
class PullOptions:
    """Options of a conversion. Languages are for checkpoints that do not name theirs; `sha256` is of a URL's file."""

    precision: Precision = "int8"
    source: Sequence[str] = ()
    target: Sequence[str] = ()
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class _Fetched:
    """A checkpoint or a bundle on disk, before its conversion."""

    folder: Path
    origin: Origin
    written_origin: str


def pull(
    name: str, options: PullOptions, home: Home, report: Report = lambda _: None, progress: Progress = no_progress
) -> Path:
    """Return the folder of a model's bundle; download and convert the model if the cache lacks it.

    A path to a bundle, or to a folder of bundles, is returned as it is. Raises ValueError and OSError with the cause.
    """
    model = parse_name(name)
    if model.kind == "path" and _has_bundles(Path(model.text)):
        return Path(model.text)
    key = _key(model)
    folder = home.folder(key, options.precision)
    with home.lock(folder, report):
        if (folder / MANIFEST_FILE).is_file():
            try:
                load_bundle(folder)
            except BundleError as error:
                report(f"{error}; making it again")
            else:
                return folder
        if model.kind == "hub" and name != model.text:
            report(f"{name} is {model.text}")
        home.root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.root, prefix=".pull-") as temporary:
            fetched = _fetch(model, options, home, Path(temporary), report, progress)
            staged = Path(temporary) / "bundle"
            _make_bundle(fetched, staged, model, options, report)
            home.add(staged, folder, fetched.origin)
        if model.kind == "url":
            shutil.rmtree(_download_folder(home, key))
    return folder


def _has_bundles(path: Path) -> bool:
    return (path / MANIFEST_FILE).is_file() or (path.is_dir() and any(path.glob(f"*/{MANIFEST_FILE}")))


def _key(model: ModelName) -> str:
    """Return the name of a model in the cache; the same for equal sources only."""
    if model.kind == "hub":
        return model.text
    if model.kind == "url":
        return f"{model.short}-{hashlib.sha256(model.text.encode()).hexdigest()[:8]}"
    path = Path(model.text).resolve()
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    # A changed folder is another model.
    state = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.is_file()]
    return f"{model.short}-{hashlib.sha256(repr(state).encode()).hexdigest()[:8]}"


def _download_folder(home: Home, key: str) -> Path:
    return home.root / "downloads" / key


def _fetch(
    model: ModelName, options: PullOptions, home: Home, temporary: Path, report: Report, progress: Progress
) -> _Fetched:
    if model.kind == "hub":
        import library.conversion  # noqa: F401 - before a download that could not be used without torch

        hub = download_model(model.text, report, progress)
        origin = Origin(model.text, hub.address, hub.licence)
        return _Fetched(hub.path, origin, f"{hub.name}@{hub.commit}")
    path, address = Path(model.text), model.text
    digest = None
    if model.kind == "url":
        report(f"downloading {model.text}")
        name = urlsplit(model.text).path.rpartition("/")[2] or "model"
        path = _download_folder(home, _key(model)) / name
        download(RemoteFile(model.text, sha256=options.sha256), path, progress)
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        report(f"SHA-256: {digest}")
    else:
        address = str(path.resolve())
    if path.is_file():
        if not is_archive(path):
            raise ValueError(f"{path} must be a folder or an archive (.zip, .tar.gz, .argosmodel)")
        path = extract(path, temporary / "extracted" / model.short)
    licence = card_licence(path)
    report(f"licence: {licence or 'not stated'}")
    return _Fetched(path, Origin(address, address, licence, digest), model.short)


def _make_bundle(fetched: _Fetched, staged: Path, model: ModelName, options: PullOptions, report: Report) -> None:
    if (fetched.folder / MANIFEST_FILE).is_file():
        config = load_bundle(fetched.folder).config
        staged.mkdir()
        for name in (*config.files, CARD_FILE):
            if (fetched.folder / name).is_file():
                shutil.copyfile(fetched.folder / name, staged / name)
        save_manifest(staged, config)
    else:
        from library.conversion import convert

        languages = (options.source, options.target)
        bundle = convert(
            fetched.folder, fetched.written_origin, staged, options.precision, model.short, languages, report
        )
        config = bundle.config
    if not (staged / CARD_FILE).exists():
        (staged / CARD_FILE).write_text(_card(config, fetched.origin), "utf-8")


def _card(config: BundleConfig, origin: Origin) -> str:
    """Return the model card: the server reads the paragraph of the intended use."""
    licence = origin.licence or "not stated; see the origin"
    return (
        f"# {config.name}\n\n"
        f"**Intended use:** translation from {listed(config.source_languages)} to {listed(config.target_languages)}. "
        f"Licence: {licence}. Origin: {origin.address}\n"
    )


def listed(languages: Sequence[str]) -> str:
    """Return languages as text; of many, their number."""
    if len(languages) > _MAX_LISTED_LANGUAGES:
        return f"{len(languages)} languages"
    return ", ".join(languages)
