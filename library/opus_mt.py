"""Language pairs and their OPUS-MT models on the hub (Tiedemann and Thottingal 2020): small ones for one direction.

The names are those of published repositories, `Helsinki-NLP/opus-mt-<source>-<target>`; ISO 639-1 codes on both sides.
"""

from collections.abc import Mapping
from typing import Final

from server.text.language_tags import primary_language

_ORGANISATION: Final = "Helsinki-NLP"

# Targets of each source language.
_TARGETS: Final[Mapping[str, str]] = {
    "af": "de en eo es fi fr nl ru sv",
    "am": "sv",
    "ar": "de el en eo es fr he it pl ru tr",
    "az": "en es tr",
    "be": "es",
    "bg": "de en eo es fi fr it ru sv tr uk",
    "bi": "en es fr sv",
    "bn": "en",
    "ca": "de en es fr it nl pt uk",
    "cs": "de en eo fi fr sv uk",
    "cy": "en",
    "da": "de en eo es fi fr no ru",
    "de": (
        "af ar bg bi ca cs da ee el en eo es et eu fi fj fr ha he ho hr ht hu ig is it kg ln lt ms mt nl no ny pl "
        "tl uk vi"
    ),
    "ee": "de en es fi fr sv",
    "el": "ar eo fi fr sv",
    "en": (
        "af ar az bg bi ca cs cy da de ee el eo es et eu fi fj fr ga gl gv ha he hi ho ht hu hy id ig is it kg kj "
        "lg ln lu mg mh mk ml mr mt ng nl ny om rn ro ru rw sg sk sm sn sq ss st sv sw ti tl tn to ts tw ty uk ur "
        "vi xh zh"
    ),
    "eo": "af bg cs da de el en es fi fr he hu it nl pl pt ro ru sh sv",
    "es": (
        "af ar bg bi ca cs da de ee el en eo et eu fi fj fr gl ha he ho hr ht id ig is it kg ln lt mk mt nl no ny "
        "pl rn ro ru rw sg sl sm sn st tl tn to tw ty uk ve vi xh yo"
    ),
    "et": "de en es fi fr ru sv",
    "eu": "de en es ru",
    "fi": (
        "af bg cs de ee el en eo es et fj fr ha he ho hr ht hu id ig is it kg lg ln lu lv mg mh mk mt nl no ny ro "
        "ru rw sg sk sl sm sn sq st sv sw tn to tr ts tw ty uk ve xh yo"
    ),
    "fj": "en fr",
    "fr": (
        "af ar bg bi ca de ee el en eo es fj ha he ho hr ht hu id ig kg lg ln lu mh ms mt no ny pl ro ru rw sg sk "
        "sl sm sn st sv tl tn to ts tw ty uk ve vi xh yo"
    ),
    "ga": "en",
    "gl": "en es pt",
    "gv": "en",
    "ha": "en es fi fr sv",
    "he": "ar de eo es fi fr it ru sv uk",
    "hi": "en ur",
    "ho": "en",
    "hr": "es fi fr sv",
    "ht": "en es fi fr sv",
    "hu": "de en eo fi fr sv uk",
    "hy": "en ru",
    "id": "en es fi fr sv",
    "ig": "de en es fi fr sv",
    "is": "de en eo es fi fr it sv",
    "it": "ar bg ca de en eo es fr is lt ms sv uk vi",
    "ja": "ar bg da de en es fi fr he hu it ms nl pl pt ru sh sv tr vi",
    "ka": "en ru",
    "kg": "en es fr sv",
    "kj": "en",
    "kl": "en",
    "ko": "de en es fi fr hu ru sv",
    "lg": "en es fi fr sv",
    "ln": "de en es fr",
    "lt": "de eo es fr it pl ru sv tr",
    "lu": "en es fi fr sv",
    "lv": "en es fi fr ru sv",
    "mg": "en es",
    "mh": "en es fi",
    "mk": "en es fi fr",
    "ml": "en",
    "mr": "en",
    "ms": "de fr it",
    "mt": "en es fi fr sv",
    "ng": "en",
    "nl": "af ca en eo es fi fr no sv uk",
    "no": "da de es fi fr nl pl ru sv uk",
    "ny": "de en es",
    "om": "en",
    "pa": "en",
    "pl": "ar de en eo es fr lt no sv uk",
    "pt": "ca eo gl tl uk",
    "rn": "de en es fr ru",
    "ro": "eo fi fr sv",
    "ru": "af ar bg da en eo es et eu fi fr he hy lt lv no sl sv uk vi",
    "rw": "en es fr sv",
    "sg": "en es fi fr sv",
    "sh": "eo uk",
    "sk": "en es fi fr sv",
    "sl": "es fi fr ru sv uk",
    "sm": "en es fr",
    "sn": "en es fr sv",
    "sq": "en es sv",
    "ss": "en",
    "st": "en es fi fr sv",
    "sv": (
        "af bg bi cs ee el en eo es et fi fj fr ha he ho hr ht hu id ig is kg lg ln lu lv mh mt nl no ny ro ru rw "
        "sg sk sl sm sn sq st th tn to ts tw ty uk ve xh yo"
    ),
    "th": "en fr",
    "ti": "en",
    "tl": "de en es pt",
    "tn": "en es fr sv",
    "to": "en es fr sv",
    "tr": "ar az en eo es fr lt sv uk",
    "ts": "en es fi fr sv",
    "tw": "es fi fr sv",
    "ty": "es fi fr sv",
    "uk": "bg ca cs de en es fi fr he hu it nl no pl pt ru sh sl sv tr",
    "ur": "en",
    "ve": "en es",
    "vi": "de en eo es fr it ru",
    "wa": "en",
    "xh": "en es fr sv",
    "yo": "en es fi fr sv",
    "zh": "bg de en fi he it ms nl sv uk vi",
}
# Pairs whose model has another name, or that only the Tatoeba Challenge's models have (twice the size).
_NAMES: Final[Mapping[tuple[str, str], str]] = {
    ("el", "en"): "opus-mt-tc-big-el-en",
    ("en", "ja"): "opus-mt-en-jap",
    ("en", "ko"): "opus-mt-tc-big-en-ko",
    ("en", "lt"): "opus-mt-tc-big-en-lt",
    ("en", "lv"): "opus-mt-tc-big-en-lv",
    ("en", "pt"): "opus-mt-tc-big-en-pt",
    ("en", "tr"): "opus-mt-tc-big-en-tr",
    ("he", "en"): "opus-mt-tc-big-he-en",
    ("lt", "en"): "opus-mt-tc-big-lt-en",
}


def opus_mt_model(source: str, target: str) -> str | None:
    """Return the hub name of the model of a pair, or None."""
    source, target = _code(source), _code(target)
    name = _NAMES.get((source, target))
    if name is None and target in _TARGETS.get(source, "").split():
        name = f"opus-mt-{source}-{target}"
    return None if name is None else f"{_ORGANISATION}/{name}"


def opus_mt_targets(source: str) -> list[str]:
    """Return the targets of a source language, sorted."""
    source = _code(source)
    named = [target for origin, target in _NAMES if origin == source]
    return sorted({*_TARGETS.get(source, "").split(), *named})


def _code(language: str) -> str:
    """Return the code of the table for a language: that of its macrolanguage, `no` for `nb`, if it has no own one."""
    is_known = language in _TARGETS or any(language in targets.split() for targets in _TARGETS.values())
    return language if is_known or "-" in language else primary_language(language)
