"""Tokenizers of T5 checkpoints, and the languages that their texts select: by a task's prefix, or by `<2xx>`."""

import re

from model.checkpoints.checkpoint import Languages, SourceTemplate, TokenizerFiles
from model.checkpoints.hugging_face_files import CheckpointFolder, Settings, read_settings
from model.checkpoints.language_codes import language_code, language_codes
from model.families.tokenizer_reading import (
    SENTENCEPIECE_FILES,
    TOKENIZER_JSON,
    PieceNumbers,
    read_tokenizer,
    template_of_class,
)

_TASK = re.compile(r"translation_([a-z]{2,3})_to_([a-z]{2,3})")
_TARGET_TOKEN = re.compile(r"<2([A-Za-z_\-]+)>")


def read_t5_tokenizer(folder: CheckpointFolder) -> TokenizerFiles:
    """Return the tokenizer: SentencePiece in one of its formats, or bytes for ByT5."""
    settings = read_settings(folder.path / "tokenizer_config.json", required=False)
    has_pieces = any((folder.path / name).is_file() for name in (TOKENIZER_JSON, *SENTENCEPIECE_FILES))
    if settings.text("tokenizer_class", "").startswith("ByT5") and not has_pieces:
        return TokenizerFiles("bytes", {})
    template = template_of_class(folder, SourceTemplate(), ("T5Tokenizer", "ByT5Tokenizer"))
    return read_tokenizer(folder, template, PieceNumbers({}))


def t5_languages(folder: CheckpointFolder, config: Settings) -> Languages:
    """Return the target languages of MADLAD-400's tokens, or of the translation tasks in config.json.

    MADLAD-400 detects the source language; every language that it writes can be the source.
    """
    codes = language_codes(_target_tokens(folder))
    if codes:
        every = tuple(codes.values())
        prompts = {code: f"<2{written}> " for written, code in codes.items()}
        aliases = {written: code for written, code in codes.items() if written != code}
        return Languages(every, every, prompts=prompts, aliases=aliases)
    tasks = config.values.get("task_specific_params")
    prompts, sources = {}, []
    for name, task in tasks.items() if isinstance(tasks, dict) else ():
        found = _TASK.fullmatch(name)
        prefix = task.get("prefix") if isinstance(task, dict) else None
        if found and isinstance(prefix, str):
            sources.append(language_code(found[1]))
            prompts[language_code(found[2])] = prefix
    if len(set(sources)) == 1:
        return Languages((sources[0],), tuple(prompts), prompts=prompts)
    return Languages((), ())


def _entries(listed: object) -> list[object]:
    return listed if isinstance(listed, list) else []


def is_translation_task(name: str) -> bool:
    """Return whether a task in config.json translates between two languages."""
    return _TASK.fullmatch(name) is not None


def _target_tokens(folder: CheckpointFolder) -> list[str]:
    """Return the languages of all tokens `<2xx>` in tokenizer.json, in order."""
    path = folder.path / TOKENIZER_JSON
    if not path.is_file():
        return []
    values = read_settings(path).values
    model, added = values.get("model"), values.get("added_tokens")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    pieces: list[object] = []
    for entry in (*_entries(vocabulary), *_entries(added)):
        match entry:
            case [piece, *_] | {"content": piece}:
                pieces.append(piece)
    found = (_TARGET_TOKEN.fullmatch(piece) for piece in pieces if isinstance(piece, str))
    return list(dict.fromkeys(match[1] for match in found if match))
