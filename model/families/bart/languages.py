"""Languages of BART, mBART, M2M100 and Pegasus checkpoints, and the tokens that select them."""

from collections.abc import Callable
from dataclasses import replace

from model.checkpoints.checkpoint import Languages, SourceTemplate
from model.checkpoints.hugging_face_files import CheckpointFolder, Settings, read_settings
from model.checkpoints.language_codes import language_codes
from model.families.generation_settings import GenerationSettings
from model.families.tokenizer_reading import language_tokens, template_of_class

# Languages of M2M100, in the order of their tokens, which follow the vocabulary; no file of a checkpoint has to list
# them (Fan et al. 2021, arXiv:2010.11125).
_M2M100_LANGUAGES = (
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy "
    "id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru "
    "sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
)
# The multilingual models of WMT 2021 have the same format.
_WMT21_LANGUAGES = "en ha is ja cs ru zh de"
_M2M100_CLASSES = ("", "M2M100Tokenizer", "NllbTokenizer", "PreTrainedTokenizer", "TokenizersBackend")

ReadLanguages = Callable[[CheckpointFolder, GenerationSettings, SourceTemplate], tuple[Languages, SourceTemplate]]
"""Returns the languages of a checkpoint and, from the family's template of sources, its own."""


def no_languages(*classes: str) -> ReadLanguages:
    """Return a reader of families without tokens of languages, whose tokenizers have these classes."""

    def read(
        folder: CheckpointFolder, settings: GenerationSettings, template: SourceTemplate
    ) -> tuple[Languages, SourceTemplate]:
        return Languages((), ()), template_of_class(folder, template, classes)

    return read


def translation_languages(
    folder: CheckpointFolder, settings: GenerationSettings, template: SourceTemplate
) -> tuple[Languages, SourceTemplate]:
    """Return the languages of M2M100, NLLB-200 or SMaLL-100.

    In the first two, a token of the source language is before the text, or with NLLB's `legacy_behaviour` the last one,
    and the target's is the first one of the output. SMaLL-100 has the target's token before the text (Mohammadshahi et
    al. 2022, arXiv:2210.11621), and nothing in its settings is different but the class of its tokenizer.
    """
    tokenizer = read_settings(folder.path / "tokenizer_config.json", required=False)
    if _is_small100(folder, tokenizer):
        codes = language_codes(_m2m100_tokens(folder))
        every = tuple(codes.values())
        prefixes = {code: f"__{written}__" for written, code in codes.items()}
        return Languages(every, every, source_prefix=prefixes, aliases=_aliases(codes)), template
    if tokenizer.text("tokenizer_class", "").removesuffix("Fast") not in _M2M100_CLASSES:
        tokenizer.reject("tokenizer_class", f"must be one of {', '.join(filter(None, _M2M100_CLASSES))}")
    tokens = language_tokens(folder)
    # Only the tokenizer of NLLB-200 has the setting.
    if tokens and tokenizer.boolean("legacy_behaviour", False):
        template = replace(template, language_last=True)
    return _selected_by_tokens(tokens or _m2m100_tokens(folder), forces_target=True), template


def _is_small100(folder: CheckpointFolder, tokenizer: Settings) -> bool:
    is_named = tokenizer.text("tokenizer_class", "").lower().startswith("small100")
    return is_named or (folder.path / "tokenization_small100.py").is_file()


def mbart_languages(
    folder: CheckpointFolder, settings: GenerationSettings, template: SourceTemplate
) -> tuple[Languages, SourceTemplate]:
    """Return the languages of mBART-50, which are selected as in NLLB-200, or of mBART.

    In mBART, the token of the source language is the last one, and the token of the only target language starts the
    decoder.
    """
    tokens = language_tokens(folder)
    tokenizer = read_settings(folder.path / "tokenizer_config.json", required=False)
    if not tokens:
        return Languages((), ()), template_of_class(folder, template, ("MBartTokenizer", "MBart50Tokenizer"))
    if "50" in tokenizer.text("tokenizer_class", "") or len(tokens) > 25:
        return _selected_by_tokens(tokens, forces_target=True), template
    languages = _selected_by_tokens(tokens, forces_target=False)
    start = settings.decoder_start
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
    first_tokens = ids if forces_target else {}
    return Languages(every, every, first_tokens=first_tokens, source_tokens=ids, aliases=_aliases(codes))


def _aliases(codes: dict[str, str]) -> dict[str, str]:
    return {written: code for written, code in codes.items() if written != code}


def prefix_tokens(folder: CheckpointFolder, languages: Languages) -> dict[str, int]:
    """Return the tokens that begin a source in a target language: vocab.json lacks them, as those of M2M100."""
    return {f"__{written}__": id_ for written, id_ in _m2m100_tokens(folder).items()} if languages.source_prefix else {}


def _m2m100_tokens(folder: CheckpointFolder) -> dict[str, int]:
    """Return the tokens `__xx__` of M2M100 by `xx`: they follow the vocabulary, if there is one."""
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
