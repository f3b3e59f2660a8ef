"""`kvasir pull`: from the name of a model to a bundle in the cache, downloaded and converted at most once."""

import hashlib
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from bundle.loading import load_bundle, save_manifest
from bundle.manifest import MANIFEST_FILE, BundleError
from bundle.model_card import CARD_FILE
from bundle.tensors import Precision
from library.card import card_text
from library.home import Home, Origin
from library.mozilla import (
    LICENCE,
    REGISTRY_URL,
    RegistryModel,
    choose_model,
    fetch_model,
    models_of_pair,
    read_metadata,
)
from library.names import PAIR, ModelName, language_tag, parse_name
from library.opus_mt import opus_mt_model
from library.registry_download import read_registry
from model.checkpoints.archives import extract, is_archive, require_files
from model.checkpoints.download import Progress, RemoteFile, download, no_progress
from model.checkpoints.hub import card_licence, download_model
from model.temporary_folders import temporary_folder

Report = Callable[[str], None]
_DIGEST = re.compile(r"[0-9a-fA-F]{64}")


@dataclass(frozen=True, slots=True)
class PullOptions:
    """Options of a conversion. Languages are for checkpoints that do not name theirs; `sha256` is of a URL's file.

    `registry` selects the models of language pairs: "mozilla", "opus-mt", the address of another registry in Mozilla's
    format, or "any": Mozilla's, and OPUS-MT's for pairs that Mozilla's lacks. `tier` is the size of a model of a
    registry, by default the best one. With `download_only`, its files are not converted.
    """

    precision: Precision = "int8"
    source: Sequence[str] = ()
    target: Sequence[str] = ()
    sha256: str | None = None
    registry: str = "any"
    tier: str | None = None
    download_only: bool = False


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
    if options.sha256 is not None:
        if not _DIGEST.fullmatch(options.sha256):
            raise ValueError(f"`sha256` must have 64 hexadecimal digits. Given: {options.sha256}")
        if "://" not in name or parse_name(name).kind != "url":
            raise ValueError(f"`sha256` is that of the file of a URL. Given: {name}")
    if options.registry not in ("any", "opus-mt"):
        return _pull_registered(name, options, home, report, progress)
    if options.registry == "any" and (pair := PAIR.fullmatch(name)) and not Path(name).exists():
        if options.tier is not None or options.download_only:
            return _pull_registered(name, replace(options, registry="mozilla"), home, report, progress)
        if (folder := _pull_pair(pair, options, home, report, progress)) is not None:
            return folder
    elif options.tier is not None or options.download_only:
        raise ValueError("`tier` and `download_only` need a language pair and `--registry mozilla`")
    return _pull_model(parse_name(name), name, options, home, report, progress)


def _pull_pair(
    pair: re.Match[str], options: PullOptions, home: Home, report: Report, progress: Progress
) -> Path | None:
    """Return the bundle of a pair from Mozilla's registry; None if it has none, or OPUS-MT's is in the cache."""
    name, source, target = pair[0], pair[1], pair[2]
    registered = replace(options, registry="mozilla")
    if (home.folder(f"mozilla/{name}", options.precision) / MANIFEST_FILE).is_file():
        return _pull_registered(name, registered, home, report, progress)
    opus = opus_mt_model(source, target)
    if opus is not None and (home.folder(opus, options.precision) / MANIFEST_FILE).is_file():
        return None
    home.root.mkdir(parents=True, exist_ok=True)
    try:
        models = read_registry(REGISTRY_URL, home)
    except (OSError, ValueError) as error:
        if opus is None:
            raise
        report(f"Mozilla's registry cannot be read, OPUS-MT is used instead: {error}")
        return None
    if not models_of_pair(models, source, target):
        report(f"Mozilla's registry has no model for {name}, OPUS-MT is used instead")
        return None
    return _pull_registered(name, registered, home, report, progress, models)


def _pull_model(
    model: ModelName, name: str, options: PullOptions, home: Home, report: Report, progress: Progress
) -> Path:
    """Return the bundle of a model of the hub, a URL or a path."""
    if model.kind == "path" and _has_bundles(Path(model.text)):
        return Path(model.text)
    key = _key(model)
    folder = home.folder(key, options.precision)
    # Without the lock: the cache may be in an image or on a volume that cannot be written to.
    if _is_ready(folder, options):
        return folder
    with home.lock(folder, report):
        if _is_ready(folder, options, report):
            return folder
        if model.kind == "hub" and name != model.text:
            report(f"{name} is {model.text}")
        home.root.mkdir(parents=True, exist_ok=True)
        with temporary_folder(home.root, ".pull-") as temporary:
            fetched = _fetch(model, options, home, temporary, report, progress)
            staged = temporary / "bundle"
            _make_bundle(fetched, staged, model, options, report)
            home.add(staged, folder, _with_languages(fetched.origin, options))
        if model.kind == "url":
            shutil.rmtree(_download_folder(home, key))
    return folder


def _pull_registered(
    name: str,
    options: PullOptions,
    home: Home,
    report: Report,
    progress: Progress,
    models: Sequence[RegistryModel] = (),
) -> Path:
    """Return the bundle of a pair's model in a registry, or the folder of its files. `models` are the registry's."""
    pair = PAIR.fullmatch(name)
    if pair is None:
        raise ValueError(f"`--registry` needs a language pair such as en-de. Given: {name}")
    address = REGISTRY_URL if options.registry == "mozilla" else options.registry
    key = f"mozilla/{name}-{options.tier}" if options.tier else f"mozilla/{name}"
    if address != REGISTRY_URL:
        key += f"-{hashlib.sha256(address.encode()).hexdigest()[:8]}"
    folder, files = home.folder(key, options.precision), _download_folder(home, key)
    if not options.download_only and _is_ready(folder, options):
        return folder
    with home.lock(folder, report):
        if not options.download_only and _is_ready(folder, options, report):
            return folder
        models = models or read_registry(address, home)
        chosen = choose_model(models, pair[1], pair[2], options.tier)
        version = chosen.version
        languages = f"{language_tag(chosen.source)}-{language_tag(chosen.target)}"
        written = name if languages == f"{language_tag(pair[1])}-{language_tag(pair[2])}" else f"{name} as {languages}"
        described = f"tier {chosen.tier}{f', version {version}' if version else ''}"
        report(f"downloading {written}, {described}, licence: {LICENCE}")
        fetch_model(chosen, files, progress)
        if options.download_only:
            return files
        with temporary_folder(home.root, ".pull-") as temporary:
            origin = Origin(key, address, LICENCE)
            fetched = _Fetched(files, origin, f"{key}@{version}" if version else key)
            staged = temporary / "bundle"
            model = ModelName("path", name)
            source, target = language_tag(chosen.source), language_tag(chosen.target)
            named = replace(options, source=options.source or [source], target=options.target or [target])
            _make_bundle(fetched, staged, model, named, report)
            home.add(staged, folder, _with_languages(origin, options))
        shutil.rmtree(files)
    return folder


def _is_ready(folder: Path, options: PullOptions, report: Report = lambda _: None) -> bool:
    """Return whether the cache has a model, undamaged, and of the file and for the languages that options require."""
    if not (folder / MANIFEST_FILE).is_file():
        return False
    origin = Origin.of(folder)
    if options.sha256 is not None and options.sha256.lower() != origin.sha256:
        report(f"{origin.name} was made of a file with the SHA-256 {origin.sha256}; making it again")
        return False
    if (options.source or options.target) and _with_languages(origin, options) != origin:
        report(f"{origin.name} was made for other languages; making it again")
        return False
    try:
        load_bundle(folder)
    except BundleError as error:
        report(f"{error}; making it again")
        return False
    return True


def _with_languages(origin: Origin, options: PullOptions) -> Origin:
    return replace(origin, source=tuple(options.source), target=tuple(options.target))


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
        require_files(path)
    try:
        if path.is_file() and not is_archive(path):
            raise ValueError(f"{path} must be a folder or an archive (.zip, .tar.gz, .argosmodel)")
        if is_archive(path):
            path = extract(path, temporary / "extracted" / model.short)
    except ValueError as error:
        if model.kind != "url":
            raise
        path.unlink()  # it may be the page of an error; the next command must not find it
        raise ValueError(f"{model.text}: {error}; the download is deleted") from error
    licence = card_licence(path) or read_metadata(path).licence
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
        (staged / CARD_FILE).write_text(card_text(config, fetched.origin, read_metadata(fetched.folder).bleu), "utf-8")
