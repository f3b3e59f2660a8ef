"""Languages of BART, mBART, M2M100 and Pegasus checkpoints, and the tokens that select them."""

from model.checkpoints.checkpoint import Languages, SourceTemplate
from model.checkpoints.hugging_face_files import CheckpointFolder, read_settings
from model.checkpoints.language_codes import language_code, language_codes
from model.families.generation_settings import GenerationSettings
from model.families.tokenizer_reading import language_tokens

# Languages of M2M100, in the order of their tokens, which follow the vocabulary; no file of a checkpoint has to list
# them (Fan et al. 2021, arXiv:2010.11125).
_M2M100_LANGUAGES = (
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy "
    "id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru "
    "sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
)
# The multilingual models of WMT 2021 have the same format.
_WMT21_LANGUAGES = "en ha is ja cs ru zh de"


def no_languages(
    folder: CheckpointFolder, settings: GenerationSettings, template: SourceTemplate
) -> tuple[Languages, SourceTemplate]:
    """Return the languages that tokenizer_config.json names, usually none."""
    tokenizer = read_settings(folder.path / "tokenizer_config.json", required=False)
    source, target = (tokenizer.text(name, "") for name in ("source_lang", "target_lang"))
    return Languages(_codes(source), _codes(target)), template


def translation_languages(
    folder: CheckpointFolder, settings: GenerationSettings, template: SourceTemplate
) -> tuple[Languages, SourceTemplate]:
    """Return the languages of M2M100 or NLLB-200: a token before the source, and a first token of the output."""
    tokens = language_tokens(folder) or _m2m100_tokens(folder)
    return _selected_by_tokens(tokens, forces_target=True), template


def mbart_languages(
    folder: CheckpointFolder, settings: GenerationSettings, template: SourceTemplate
) -> tuple[Languages, SourceTemplate]:
    """Return the languages of mBART-50, which are selected as in NLLB-200, or of mBART.

    In mBART, the token of the source language is the last one, and the token of the only target language starts the
    decoder.
    """
    tokens = language_tokens(folder)
    tokenizer = read_settings(folder.path / "tokenizer_config.json", required=False)
    if "50" in tokenizer.text("tokenizer_class", "") or len(tokens) > 25:
        return _selected_by_tokens(tokens, forces_target=True), template
    languages = _selected_by_tokens(tokens, forces_target=False)
    start = settings.integer("decoder_start_token_id")
    target = tuple(code for code, id_ in languages.source_tokens.items() if id_ == start)
    source = tuple(code for code in languages.source if code not in target)
    return (
        Languages(source, target, source_tokens=languages.source_tokens, aliases=languages.aliases),
        SourceTemplate(template.before, template.after, language_last=True),
    )


def _selected_by_tokens(tokens: dict[str, int], *, forces_target: bool) -> Languages:
    codes = language_codes(tokens)
    ids = {codes[token]: id_ for token, id_ in tokens.items()}
    every = tuple(ids)
    aliases = {token: code for token, code in codes.items() if token != code}
    return Languages(every, every, first_tokens=ids if forces_target else {}, source_tokens=ids, aliases=aliases)


def _m2m100_tokens(folder: CheckpointFolder) -> dict[str, int]:
    """Return the tokens `__xx__` of M2M100 by the language: they follow the vocabulary, if there is one."""
    tokenizer = read_settings(folder.path / "tokenizer_config.json", required=False)
    known = {"m2m100": _M2M100_LANGUAGES, "wmt21": _WMT21_LANGUAGES}
    chosen = tokenizer.text("language_codes", "m2m100")
    if chosen not in known:
        tokenizer.reject("language_codes", f"must be one of {', '.join(known)}")
    path = folder.path / "vocab.json"
    if not path.is_file():
        return {}
    first = len(read_settings(path).values)
    return {language: first + index for index, language in enumerate(known[chosen].split())}


def _codes(written: str) -> tuple[str, ...]:
    return (language_code(written),) if written else ()
