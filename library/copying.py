"""Kinds of spans that a model copies, masks that stand for all others, and signs that it loses. Measured once for each
bundle.

Samples are made by rule, from random syllables and the names of units. They stand in sentences of the data; without
data in dates and lists of countries, which CLDR has in the source language. None stands alone: a text without
other words never reaches a model. A model copies what its best hypothesis has exactly once, greedily and with beams.
Equal bundles give equal answers, and large models get half of the sentences.
"""

import asyncio
import random
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache, partial
from itertools import product, zip_longest
from typing import Final

from babel import Locale
from babel.dates import format_date
from babel.lists import format_list

from bundle.loading import Bundle, save_manifest
from bundle.manifest import SpanCopying
from server.interface.decoding_options import DecodingOptions
from server.interface.engine_client import EngineClient
from server.operations.cpu_count import usable_cpus
from server.text.joining import is_unspaced
from server.text.number_forms import locale_of
from server.text.protection.masked_sentence import MaskedSentence, Restored, Strategy, read_sentence
from server.text.readers.units import OBJECT, ProtectedSpan, Unit
from server.text.spans import READABLE, UNSPACED, SpanKind, find_spans
from server.text.tokenizers.registry import open_tokenizer
from server.text.tokenizers.tokenizer import Tokenizer
from server.text.unknown_characters import UnknownCharacters
from server.translation.engine_requests import Part, SentenceEncoder
from server.translation.limits import TranslationLimits
from server.translation.types import TranslationRequest
from server.workers.pool import EnginePool, PoolOptions

_BEAM_SIZES: Final = (1, 4)
_MIN_SHARE: Final = 0.95  # of the cases that a copied kind or a mask comes back in
_MIN_SHARE_OF_BEST: Final = 0.8  # of the masks where none reaches the other share
_MAX_MASKS: Final = 12
_LARGE: Final = 100_000_000  # parameters
_NUM_FINALISTS: Final = 30  # masks that are tried three at a time
_AT_A_TIME: Final = 3
_MAX_LANGUAGES: Final = 4  # pairs of a multilingual model, among which the cases are divided
_NUM_CARRIERS: Final = 48
_CARRIER_CHARACTERS: Final = range(10, 90)
_MIN_COUNTRIES: Final = 4
_MAX_SYLLABLES: Final = 3
_NO_QUEUE_LIMIT: Final = 1 << 20

# "ω" is a word, "Ω" one in capitals, "9" a digit; all other signs stay.
_FORMS: Final[dict[SpanKind, Sequence[str]]] = {
    SpanKind.ADDRESS: (
        "https://ω.com/ω", "http://www.ω.org/ω/99", "www.ω.de", "ω.ω@ω.com", "https://ω.net/ω?ω=99&ω=ω", "ω@ω.org",
        "https://ω.ω.eu:9999/ω", "ω.com/ω-ω", "ftp://ω.org/ω/", "ω_99@ω.net", "https://ω.io/#ω", "mailto:ω@ω.com",
    ),
    SpanKind.PLACEHOLDER: (
        "{ω}", "{{ω}}", "%s", "%d", "%9$s", "${ω}", "%(ω)s", "$Ω_Ω", "[[ω]]", "%Ω%", "{9}", "##Ω##",
    ),
    SpanKind.CODE: (
        "`ω --ω`", "`ω_ω()`", "`ω = 99`", "`ω.ω`", "`Ω_Ω`", "`ω -ω ω`", "`ω[9]`", '`"ω"`', "`ω(ω, 9)`", "`ω`", "`ω/ω`",
        "`ω: 9.9`",
    ),
    SpanKind.ENTITY: (
        "&amp;", "&lt;", "&gt;", "&nbsp;", "&quot;", "&copy;", "&#99;", "&#9999;", "&hellip;", "&mdash;", "&times;",
        "&#x99;",
    ),
    SpanKind.PATH: (
        "/ω/ω", "C:\\ω\\ω.txt", "ω_ω.pdf", "~/ω/ω", "./ω/ω.sh", "ω/ω/ω.py", "ω-9.9.tar.gz", "/ω/ω/ω.conf", "ω.docx",
        "\\\\ω\\ω\\ω", "/ω/ω_ω/99", "ω99.jpg",
    ),
    SpanKind.NAME: ("@ω", "#ω", "@Ω", "#Ω", "@ω.ω", "#ω-ω", "@ωω", "#ωω", "@ω", "#ω", "@ω-ω", "#ωωω"),
    SpanKind.IDENTIFIER: (
        "KX-9999", "ω_ω", "--ω", "T999", "v9.9.9", "--ω-ω", "ω99ω", "99-B", "RG/9999/99", "P-99-99", "ω_ω_99",
        "9.9.9-rc9",
    ),
    SpanKind.SYMBOL: (":)", "😀", "👍", ";-)", "🎉", "❤️", "✅", "🚀", ":D", "⭐", "🔥", "🇪🇺"),
}  # fmt: skip


# Signs of ordinary texts, which some models have in their vocabulary and have hardly seen.
_SIGNS: Final = "~^=<>+−·©®™°§€£¥¢±×÷≈≠≤≥←→↑↓†‡•№‰½¼¾µ"
_MIN_SHARE_OF_SIGNS: Final = 0.6  # of the cases: others are lost
_BEHIND_SIGNS: Final = ("", " 37", " 1964", "", " 28")


@dataclass(frozen=True, slots=True)
class _Case:
    """A sentence of one pair of languages with what must come back, in its order."""

    languages: tuple[str, str]
    sentence: MaskedSentence
    names: Sequence[str]


@dataclass(slots=True)
class _Counts:
    """How many cases each name has had, and how many of them came back."""

    tried: Counter[str] = field(default_factory=Counter)
    returned: Counter[str] = field(default_factory=Counter)

    def add(self, other: "_Counts") -> None:
        """Count the cases of another round, too."""
        self.tried += other.tried
        self.returned += other.returned

    def share(self, name: str) -> float:
        """Return the share of the cases that came back."""
        return self.returned[name] / self.tried[name] if self.tried[name] else 0.0


def add_copying(bundle: Bundle, report: Callable[[str], None] = lambda _: None) -> Bundle:
    """Measure what a translation model copies, and write it into its `bundle.json`. Other models stay as they are."""
    if not bundle.config.translates:
        return bundle
    report("trying what the model copies")
    threads = usable_cpus() if _is_large(bundle) else 1
    pool = EnginePool.open(bundle, PoolOptions(threads_per_replica=threads, max_waiting=_NO_QUEUE_LIMIT))
    try:
        copying = measured_copying(pool, _pairs(bundle))
    finally:
        pool.close()
    report(described(copying))
    return save_manifest(bundle.path, bundle.config.model_copy(update={"copying": copying}))


def described(copying: SpanCopying) -> str:
    """Return what a model copies, in one sentence."""
    kinds, masks = ", ".join(copying.copied), " ".join(copying.masks)
    signs = f" It loses {' '.join(copying.lost_signs)}" if copying.lost_signs else ""
    return (
        f"The model copies {kinds or 'no kind of spans'}; masks of others: {f'`{masks}`' if masks else 'none'}.{signs}"
    )


def measured_copying(
    engine: EngineClient, pairs: Sequence[tuple[str, str]], sentences: Sequence[str] = ()
) -> SpanCopying:
    """Return what a model copies between these languages, in `sentences` of the source if there are any."""
    return _Trial(engine, pairs, sentences).copying()


def _is_large(bundle: Bundle) -> bool:
    return bundle.config.provenance.num_parameters > _LARGE


def _pairs(bundle: Bundle) -> list[tuple[str, str]]:
    """Return a few pairs of languages of a model, from all over its lists."""
    sources, targets = bundle.config.source_languages, bundle.config.target_languages
    number = min(max(len(sources), len(targets)), _MAX_LANGUAGES)
    chosen = [
        (sources[index * len(sources) // number], targets[(index + 1) * len(targets) // number - 1])
        for index in range(number)
    ]
    return [pair for pair in chosen if pair[0] != pair[1]] or [(sources[0], targets[-1])]


# The elements of a sentence, and what joins them.
_Carrier = tuple[Sequence[str], Callable[[Sequence[str]], str]]
_PLACES: Final = 3  # in front of all elements, in the middle, behind all


class _Trial:
    """Cases for one model, and its answers."""

    def __init__(self, engine: EngineClient, pairs: Sequence[tuple[str, str]], sentences: Sequence[str]) -> None:
        self._engine = engine
        self._pairs = pairs
        self._tokenizer: Tokenizer = open_tokenizer(engine.bundle)
        self._unknown = UnknownCharacters(self._tokenizer.known_characters)
        self._step = 2 if _is_large(engine.bundle) else 1
        of_data = [_of_sentence(sentence) for sentence in _spread(sentences, self._unknown)]
        self._carriers = {pair: of_data or _neutral(pair[0]) for pair in pairs}

    def copying(self) -> SpanCopying:
        """Return the kinds and the masks that come back."""
        cases = list(self._kind_cases())
        kinds = [kind.value for kind in SpanKind if kind in READABLE]
        for beam_size in _BEAM_SIZES:
            counts = self._returned([case for case in cases if case.names[0] in kinds], beam_size)
            kinds = [kind for kind in kinds if counts.share(kind) >= _MIN_SHARE]
        return SpanCopying(copied=tuple(kinds), masks=tuple(self._masks()), lost_signs=tuple(self._lost_signs()))

    def _lost_signs(self) -> list[str]:
        """Return the signs that do not come back, by themselves or in front of numbers."""
        signs = [sign for sign in _SIGNS if self._unknown.all_known(sign)]
        cases = [
            self._case([sign], number + place, [sign], SpanKind.SYMBOL, Strategy.AS_IS, behind)
            for number, sign in enumerate(signs)
            for place, behind in list(enumerate(_BEHIND_SIGNS))[:: self._step]
        ]
        counts = self._returned(cases, 1)
        return [sign for sign in signs if counts.tried[sign] and counts.share(sign) < _MIN_SHARE_OF_SIGNS]

    def _kind_cases(self) -> Iterator[_Case]:
        """Yield each sample in two of the three places, for large models in one."""
        draw = random.Random(0)  # noqa: S311 - the same samples for every model
        number = 0
        for kind, forms in _FORMS.items():
            for sample in [_filled(form, draw) for form in forms]:
                if not self._unknown.all_known(sample):
                    continue
                for _ in range(2 // self._step):
                    number += 1
                    yield self._case([sample], number, [kind.value], kind, Strategy.AS_IS)

    def _masks(self) -> list[str]:
        """Return the most reliable masks: all candidates are tried by themselves, the best ones in threes."""
        candidates = [mask for mask in _candidates() if self._unknown.all_known(mask)][:: self._step]
        trials = [self._mask_case([mask], place) for mask in candidates for place in range(_PLACES)]
        found = self._returned(trials, 1)
        best = [mask for mask in candidates if found.share(mask) >= _MIN_SHARE_OF_BEST][: _NUM_FINALISTS // self._step]
        finals = [self._mask_case([mask], place) for mask in best for place in range(_PLACES, 3 * _PLACES)]
        # Neighbours in one row are apart in the next.
        rows = [best[first::step] for step in (1, 2, 3, 5) for first in range(step)]
        groups = [row[first : first + _AT_A_TIME] for row in rows for first in range(0, len(row), _AT_A_TIME)]
        finals += [self._mask_case(group, place) for group in groups for place in range(2)]
        counts = _Counts()
        for beam_size in _BEAM_SIZES:
            counts.add(self._returned(finals, beam_size))
        best.sort(key=lambda mask: (-counts.share(mask), _sort_of(mask)))
        reliable = [mask for mask in best if counts.share(mask) >= _MIN_SHARE]
        return (reliable or [mask for mask in best if counts.share(mask) >= _MIN_SHARE_OF_BEST])[:_MAX_MASKS]

    def _mask_case(self, masks: Sequence[str], place: int) -> _Case:
        number = place + _PLACES * sum(map(ord, "".join(masks)))  # not the same carrier for all
        return self._case(masks, number, masks, SpanKind.UNKNOWN, Strategy.MASK)

    def _case(
        self,
        parts: Sequence[str],
        number: int,
        names: Sequence[str],
        kind: SpanKind,
        means: Strategy,
        behind: str = "",
    ) -> _Case:
        """Return the case of this number: its pair, its carrier and its place follow one another."""
        pair = self._pairs[number % len(self._pairs)]
        carriers = self._carriers[pair]
        elements, join = carriers[number % len(carriers)]
        at = sorted((0, len(elements) // 2, len(elements))[(number + part) % _PLACES] for part in range(len(parts)))
        filled = list(elements)
        for index, place in enumerate(at):
            filled.insert(index + place, OBJECT + behind)
        before, *others = join(filled).split(OBJECT)
        text, spans = before, []
        for part, other in zip(parts, others, strict=True):
            shown = part if means is Strategy.AS_IS else OBJECT
            spans.append(ProtectedSpan(len(text), len(text) + len(shown), part, kind, is_readable=True))
            text += shown + other
        sentence = read_sentence(
            Unit(text, text, (), tuple(spans), str),
            0,
            len(text),
            [means] * len(parts),
            parts,
            is_unspaced=is_unspaced(pair[1]),
        )
        assert sentence is not None
        return _Case(pair, sentence, names)

    def _returned(self, cases: Sequence[_Case], beam_size: int) -> _Counts:
        """Return how often the parts of each name came back."""
        counts = _Counts()
        for pair in self._pairs:
            request = TranslationRequest((), *pair, DecodingOptions(beam_size=beam_size), bypass_cache=True)
            encoder = SentenceEncoder(request, TranslationLimits(), self._tokenizer, self._engine.bundle.config)
            parts = [(case, Part(0, case.sentence)) for case in cases if case.languages == pair]
            parts = [(case, part) for case, part in parts if encoder.fits(part)]
            jobs = encoder.jobs(part for _, part in parts)
            completions = asyncio.run(self._engine.generate([job.request for job in jobs])) if jobs else []
            for (case, _), completion in zip(parts, completions, strict=True):
                restored = case.sentence.restore(self._tokenizer.decode(completion.hypotheses[0].token_ids), None)
                lost = () if isinstance(restored, Restored) else restored
                counts.tried.update(case.names)
                counts.returned.update([name for index, name in enumerate(case.names) if index not in lost])
        return counts


def _spread(sentences: Sequence[str], unknown: UnknownCharacters) -> list[str]:
    """Return short sentences from all over the data that have words only."""
    plain = [
        sentence
        for sentence in sentences
        if len(sentence) in _CARRIER_CHARACTERS
        and sentence[0].isalpha()
        and not any(map(str.isdigit, sentence))
        and not find_spans(sentence, unknown)
    ]
    return plain[:: max(len(plain) // _NUM_CARRIERS, 1)][:_NUM_CARRIERS]


def _of_sentence(sentence: str) -> _Carrier:
    core = sentence
    while unicodedata.category(core[-1])[0] == "P":
        core = core[:-1]
    end = sentence[len(core) :]
    if UNSPACED.search(core):
        return list(core), lambda elements: "".join(elements) + end
    return core.split(" "), lambda elements: " ".join(elements) + end


def _neutral(language: str) -> list[_Carrier]:
    """Return dates and lists of countries in a language; in English if CLDR does not have the language."""
    locale = locale_of(language) or Locale("en")
    countries = _countries(locale)
    if len(countries) < _MIN_COUNTRIES:
        locale, countries = Locale("en"), _countries(Locale("en"))
    draw = random.Random(0)  # noqa: S311 - the same for every model
    carriers: list[_Carrier] = []
    for index in range(_NUM_CARRIERS // 2):
        carriers.append((draw.sample(countries, 2 + index % (_MIN_COUNTRIES - 1)), partial(format_list, locale=locale)))
        day = date(draw.randint(1990, 2030), draw.randint(1, 12), draw.randint(1, 28))
        carriers.append((format_date(day, "full", locale).split(" "), " ".join))
    return carriers


def _countries(locale: Locale) -> list[str]:
    """Return the names of countries that are one word."""
    names = [name for code, name in sorted(locale.territories.items()) if code.isalpha()]
    return [name for name in names if all(unicodedata.category(sign)[0] in "LM" for sign in name)]


def _filled(form: str, draw: random.Random) -> str:
    """Return a sample of a form: half of its words are names of units, which tempt a model, half mean nothing."""
    written = ""
    for sign in form:
        if sign in "ωΩ":
            word = draw.choice(_words()) if draw.random() < 0.5 else _syllables(draw)
            written += word.upper() if sign == "Ω" else word
        else:
            written += str(draw.randint(2, 9)) if sign == "9" else sign
    return written


@cache
def _words() -> list[str]:
    names = {each.get("long", "") for each in Locale("en").unit_display_names.values()}
    return sorted(name for name in names if name.isalpha() and name.islower() and len(name) > _MAX_SYLLABLES)


def _syllables(draw: random.Random) -> str:
    number = draw.randint(2, _MAX_SYLLABLES)
    return "".join(draw.choice("bdfgklmnprstvz") + draw.choice("aeiou") for _ in range(number))


def _sort_of(mask: str) -> int:
    """Return the place of a mask among equally reliable ones: letters are least often part of something else."""
    return next(index for index, sort in enumerate(_sorts()) if mask in sort)


def _candidates() -> list[str]:
    """Return all masks to try, some of every sort at first."""
    return [mask for row in zip_longest(*_sorts()) for mask in row if mask is not None]


def _sorts() -> Sequence[Sequence[str]]:
    """Return neutral strings, none of which is a name or a word of a language."""
    rare = "XZQKJ"
    return (
        [f"{letter}{digit}" for digit in range(1, 10) for letter in "XQZ"],
        [first + second for first, second in product(rare, rare)],
        [f"{opening}{digit}{closing}" for digit in range(1, 5) for opening, closing in ("[]", "{}", "()")],
        ["4817", "7392", "9654", "83517", "36849", "59173"],
        list("§¤¶†‡◆◇※¬|"),
    )
