"""Files of a folder with a model in Marian's own format: weights, vocabularies, settings of the decoder, languages.

Folders are those of Marian's trainer (`model.npz`, `model.npz.decoder.yml`), Firefox (`model.ende.intgemm.alphas.bin`,
`vocab.ende.spm`, `lex.50.50.ende.s2t.bin`), translateLocally (`model_info.json`) and Mozilla's registry
(`metadata.json`).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from model.checkpoints.checkpoint import Languages
from model.checkpoints.errors import CheckpointError
from model.checkpoints.hugging_face_files import read_settings
from model.checkpoints.language_codes import language_code
from model.families.marian.description import read_yaml
from model.families.marian.tensor_files import is_marian_file

_PAIR: Final = re.compile(r"\.([a-z]{2})([a-z]{2})\.")
_STUDENT: Final = re.compile(r"([a-z]{2})([a-z]{2})\.student\b")  # a folder of Bergamot: `ende.student.tiny11`
_MAX_YAML_BYTES: Final = 1 << 20
_VOCABULARY_ENDINGS: Final = (".spm", ".yml", ".yaml", ".json", ".txt")


@dataclass(frozen=True, slots=True)
class NativeFiles:
    """Files of one model: the vocabularies of source and target; `allows_unknown` is a setting of the decoder.

    `shortlist` is None unless the folder has a binary one; `unread_shortlists` are lists of words without one.
    """

    model: Path
    vocabularies: tuple[Path, Path]
    allows_unknown: bool
    shortlist: Path | None = None
    unread_shortlists: tuple[Path, ...] = ()


def model_files(folder: Path) -> list[Path]:
    """Return the files with weights in Marian's formats, without states of the optimizer."""
    found = [path for pattern in ("*.npz", "*.bin") for path in folder.glob(pattern)]
    names = sorted(path for path in found if not path.name.startswith("lex.") and ".optimizer." not in path.name)
    return [path for path in names if is_marian_file(path)]


def find_files(folder: Path) -> NativeFiles:
    """Return the files of the model in a folder. Raises `CheckpointError` if it has several, or no vocabulary."""
    models = model_files(folder)
    settings = _decoder_settings(folder, models)
    named = _named(folder, settings.get("models"))
    model = named[0] if len(named) == 1 else next((path for path in models if path.name == "model.npz"), None)
    if len(models) == 1:
        model = models[0]
    if model is None:
        raise CheckpointError(
            f"{folder.name} has {len(models)} models: {', '.join(path.name for path in models)}; leave one in the "
            "folder, or name it in decoder.yml"
        )
    vocabularies = _named(folder, settings.get("vocabs")) or _vocabularies(folder)
    if len(vocabularies) not in (1, 2):
        raise CheckpointError(
            f"{folder.name} must have one vocabulary or two, such as vocab.ende.spm, or srcvocab.ende.spm and "
            f"trgvocab.ende.spm. Given: {', '.join(path.name for path in vocabularies) or 'none'}"
        )
    allows_unknown = settings.get("allow-unk") is True
    shortlist = _shortlist(folder, settings)
    unread = () if shortlist else _word_lists(folder)
    return NativeFiles(model, (vocabularies[0], vocabularies[-1]), allows_unknown, shortlist, unread)


def find_languages(folder: Path, files: NativeFiles) -> Languages:
    """Return the languages from the metadata beside a model, or from a name; none if nothing has them."""
    metadata = read_settings(folder / "metadata.json", required=False).values
    source, target = metadata.get("sourceLanguage"), metadata.get("targetLanguage")
    if isinstance(source, str) and isinstance(target, str):
        return Languages((language_code(source),), (language_code(target),))
    information = read_settings(folder / "model_info.json", required=False).values
    tags, target = information.get("srcTags"), information.get("trgTag")
    if isinstance(tags, dict) and tags and isinstance(target, str):
        return Languages(tuple(language_code(str(tag)) for tag in tags), (language_code(target),))
    # Both directions share a vocabulary, which is named after one of them: `vocab.deen.spm` in `ende.student.tiny11`.
    names = (_PAIR.search(files.model.name), _STUDENT.match(folder.name))
    for found in (*names, *(_PAIR.search(path.name) for path in files.vocabularies)):
        if found:
            return Languages((language_code(found[1]),), (language_code(found[2]),))
    return Languages((), ())


def _decoder_settings(folder: Path, models: Iterable[Path]) -> dict[str, object]:
    """Return the first settings of a decoder in the folder that name a model of it."""
    candidates = [model.with_name(f"{model.name}.decoder.yml") for model in models]
    candidates += [
        folder / "decoder.yml",
        *sorted(folder.glob("[!.]*.decoder.yml")),
        *sorted(folder.glob("config*.yml")),
    ]
    for path in candidates:
        if path.is_file() and path.stat().st_size <= _MAX_YAML_BYTES:
            settings = read_yaml(path.read_text("utf-8", errors="replace"), path.name)
            if _named(folder, settings.get("models")):
                return settings
    return {}


def _named(folder: Path, listed: object) -> list[Path]:
    """Return the files of a folder with the last parts of listed paths; empty unless it has all of them."""
    names = [re.split(r"[/\\]", str(name))[-1] for name in listed] if isinstance(listed, list) else []
    paths = [folder / name for name in names if name]
    return paths if all(path.is_file() for path in paths) else []


def _shortlist(folder: Path, settings: Mapping[str, object]) -> Path | None:
    """Return the binary shortlist that the settings name, or else the only one in the folder; None without any."""
    listed = settings.get("shortlist")
    # The file is first; others are numbers. Settings that name the list of words (`lex.s2t.gz`) are those of training,
    # and the binary list beside it was made of it.
    named = [path for path in _named(folder, listed[:1]) if path.suffix == ".bin"] if isinstance(listed, list) else []
    found = named or sorted(path for path in folder.glob("lex.*bin") if path.suffix == ".bin" and path.is_file())
    if len(found) > 1:
        raise CheckpointError(
            f"{folder.name} has {len(found)} shortlists: {', '.join(path.name for path in found)}; leave one in the "
            "folder, or name it in decoder.yml"
        )
    return found[0] if found else None


def _word_lists(folder: Path) -> tuple[Path, ...]:
    """Return the shortlists of words, `lex.s2t` or `lex.s2t.gz`."""
    return tuple(sorted(path for path in folder.glob("lex.*") if path.suffix != ".bin" and path.is_file()))


def _vocabularies(folder: Path) -> list[Path]:
    paths = sorted(path for path in folder.iterdir() if path.suffix in _VOCABULARY_ENDINGS and path.is_file())
    for patterns in (("srcvocab", "trgvocab"), ("vocab.src", "vocab.trg")):
        pair = [path for pattern in patterns for path in paths if path.name.startswith(pattern)]
        if len(pair) == 2:
            return pair
    return [path for path in paths if re.match(r"(.*[.\-])?vocab\b", path.name)]
