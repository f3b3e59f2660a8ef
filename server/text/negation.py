"""Negations and prohibitions, which a translation must not lose: without them it says the opposite."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

Alternatives = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Words:
    """Patterns of the words of one language, and words of which a search may be required to write one.

    `stems` are parts of words; a sentence without any of them has no negation. `idioms` have a negation that seldom
    remains one. `equivalents` are words that may stand for a negation of another language.
    """

    without: str
    stems: str
    negations: str
    prohibitions: str
    idioms: str
    equivalents: str
    a_negation: Alternatives
    a_prohibition: Alternatives


_WORDS: Mapping[str, _Words] = {
    "en": _Words(
        "without",
        "no n't n’t nev hardly without neither forbid prohib banned limits unauth",
        r"not|cannot|\w+n['’]t|no(?!\.?\s?\d)|never|none|no(?:body|thing)|nowhere|neither|nor|without|hardly",
        r"forbidden|prohibited|banned|off limits|unauthori[sz]ed",
        r"without (?:a |any )?(?:doubt|question)|no (?:doubt|matter|wonder|sooner|more than|longer than)"
        r"|not (?:only|just|least)|(?:not|\w+n['’]t) (?:\w+ )?until|why (?:not|don['’]t|doesn['’]t)"
        r"|or not|(?:can['’]t|cannot|can not) help|nothing but|if not|not that"
        r"|\w+n['’]t (?:i|you|he|she|it|we|they|there)(?=\?)",
        r"un(?!der|it|ion|ique|iver|til|to|ti|cle)\w{3,}"
        r"|in(?:capable|complete|correct|sufficient|valid|visible|accessible"
        r"|significant|appropriate|different)|im(?:possible|mature|patient)|il(?:legal|legible)|ir(?:regular"
        r"|relevant)"
        r"|\w+less|fail\w*|refus\w+|lack\w*|avoid\w*|prevent\w*|stop\w*|wrong|out of|barely"
        r"|scarcely|seldom|rarely|free of|keep (?:out|off|away)|beware|absent|absence|miss\w*|den(?:y|ied|ies)",
        ("not", "don't", "no", "never", "nothing", "without"),
        ("forbidden", "prohibited", "not allowed", "banned"),
    ),
    "de": _Words(
        "ohne",
        "nicht kein nie nirg weder ohne kaum verb unters unzul",
        r"nicht|kein\w*|nie|niemals|niemand\w*|nichts|nirgends|nirgendwo\w*|weder|ohne|kaum",
        r"verboten\w*|untersagt\w*|unzulässig\w*|verbot",
        r"nicht (?:nur|wahr|zuletzt|allein|umsonst|bloß)|ohne (?:weiteres|zweifel|frage)|(?:warum|wieso) nicht"
        r"|oder nicht|ob nicht|wenn nicht|nichts als|nichts anderes als",
        r"nein|un(?!d|s|ter|ser|serer|i|gefähr)\w{4,}|\w{3,}los(?:e[nrsm]?)?"
        r"|in(?:kompatib\w+|kompetent\w*|akzeptabel)|fehl\w+|weiger\w+"
        r"|versäum\w+|vermeid\w+|verhinder\w+|verweiger\w+|miss\w+|falsch\w*|aufhör\w*|selten|wenig\w*|frei von"
        r"|verbiet\w+|nimmer|keinerlei|keineswegs|egal|gleichgültig|mangel\w*|entbehr\w*|ausgenommen",
        ("nicht", "kein", "keine", "keinen", "nie", "nichts", "ohne"),
        ("verboten", "untersagt", "nicht erlaubt", "nicht gestattet"),
    ),
    "fr": _Words(
        "sans",
        "ne n' n’ pas non jamais rien aucun ni sans nulle interdi défen prohib",
        r"ne|n['’]\w+|pas|non|jamais|rien|aucune?|ni|sans|nulle part",
        r"interdite?s?|défense|prohibée?s?|défendue?s?",
        r"n['’]est-ce pas|pas (?:seulement|mal|encore fini)|pourquoi pas|sans (?:aucun )?doute|ne \w+ que|n['’]\w+ que"
        r"|rien que|ou (?:pas|non)",
        r"im(?:possible|patient|prudent)\w*"
        r"|in(?:capable|valide|connue?|utile|visible|suffisan\w+|complet|compatible)s?|refus\w+|manqu\w+"
        r"|évit\w+|empêch\w+|échou\w+|guère|peu|faute|absence|cess\w+",
        ("pas", "jamais", "rien", "aucun", "aucune", "sans"),
        ("interdit", "interdite", "défense"),
    ),
    "es": _Words(
        "sin",
        "no nunca jamás nada nadie ning ni sin tampoco prohib prohíb vedad",
        r"no|nunca|jamás|nada|nadie|ningun[oa]s?|ningún|ni|sin|tampoco",
        r"prohibid[oa]s?|prohíbe|vedad[oa]s?",
        r"no (?:solo|sólo|solamente)|por qué no|o no|¿no|sin (?:duda|embargo)|nada más|de nada",
        r"im(?:posible|paciente)\w*|in(?:capaz|válid[oa]|útil|visible|completo|suficiente|compatible)\w*"
        r"|falt\w+|evit\w+|imped\w+|neg\w+|rehus\w+"
        r"|apenas|poc[oa]s?|carec\w+|dej\w+ de|ausencia",
        ("no", "nunca", "nada", "sin"),
        ("prohibido", "prohibida", "no se permite"),
    ),
    "it": _Words(
        "senza",
        "no mai niente nulla ness né senza vietat diviet proib",
        r"non|no|mai|niente|nulla|nessun\w*|né|senza",
        r"vietat[oaie]|divieto|proibit[oaie]",
        r"non (?:solo|soltanto)|perché no|o no|senza dubbio|niente male|non appena",
        r"im(?:possibile|paziente)\w*|in(?:capace|valido|utile|visibile|completo|sufficiente|compatibile)\w*"
        r"|manc\w+|evit\w+|imped\w+|rifiut\w+"
        r"|appena|poc[oah]\w*|neppure|nemmeno|neanche|assenza|smett\w+",
        ("non", "mai", "niente", "senza"),
        ("vietato", "vietata", "divieto"),
    ),
    "pt": _Words(
        "sem",
        "não nunca jamais nada ninguém nenhum nem sem proib vedad",
        r"não|nunca|jamais|nada|ninguém|nenhum\w*|nem|sem",
        r"proibid[oa]s?|vedad[oa]s?",
        r"não (?:só|somente|apenas)|por que não|ou não|sem dúvida|nada mais|de nada|não é(?=\?)",
        r"im(?:possível|paciente)\w*|in(?:capaz|válid[oa]|útil|visível|completo|suficiente|compatível)\w*"
        r"|falt\w+|evit\w+|imped\w+|recus\w+|neg\w+"
        r"|pouc[oa]s?|tampouco|deix\w+ de|ausência",
        ("não", "nunca", "nada", "sem"),
        ("proibido", "proibida", "não é permitido"),
    ),
    "nl": _Words(
        "zonder",
        "niet geen nooit niemand nergens noch zonder verbo",
        r"niet|geen|nooit|niemand|niets|nergens|noch|zonder",
        r"verboden|verbod",
        r"niet (?:alleen|waar|slechts)|waarom niet|of niet|zonder twijfel|niets dan",
        r"nee|on(?!der|s|t|ge)\w{4,}|\w{3,}loos|\w{3,}loze|weiger\w+|ontbre\w+|vermijd\w+|voorkom\w+|nauwelijks|zelden"
        r"|weinig|mis\w{3,}|stop\w*|verkeerd\w*",
        ("niet", "geen", "nooit", "niets"),
        ("verboden", "niet toegestaan"),
    ),
    "pl": _Words(
        "bez",
        "nie nigdy nikt niko nic nigdzie żad ani bez zabron wzbron zakaz",
        r"nie|nigdy|nikt|nikogo|nic|niczego|nigdzie|żad\w+|ani|bez",
        r"zabronion\w+|wzbronion\w+|zakaz\w*",
        r"nie (?:tylko|jedynie)|dlaczego nie|czy nie|bez wątpienia|nic poza|czyż nie",
        r"nie\w{3,}|bez\w{3,}|brak\w*|odm[aó]wi\w*|unik\w+|rzadko|mało|niewiele|przestań|przesta\w+|ledwo",
        ("nie", "nigdy", "nic", "bez"),
        ("zabronione", "wzbronione", "zakaz"),
    ),
    "ru": _Words(
        "без",
        "не нет ни без нельзя запре воспре",
        r"не|нет|ни|нельзя|никогда|никто|никого|ничего|ничто|нигде|никак\w*|без",
        r"запрещ[её]н\w*|запрещается|воспрещ[её]н\w*|воспрещается|запрет\w*",
        r"не только|почему (?:бы )?не|или нет|не так ли|без сомнения|не раз",
        r"не\w{3,}|без\w{3,}|бес\w{4,}|отказ\w*|избег\w+|редко|мало|едва|отсутств\w+",
        ("не", "нет", "никогда", "без"),
        ("запрещено", "нельзя", "запрещается"),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Negation:
    """The negation of a sentence in lower case: its counterparts, and words of which a translation must have one."""

    sentence: str
    counterparts: re.Pattern[str]
    doubled: re.Pattern[str]
    words: Alternatives

    def is_in(self, translation: str) -> bool:
        """Return whether a translation has a negation, or a word that may stand for one, or is a copy."""
        lowered = translation.lower()
        return self.counterparts.search(lowered) is not None or lowered == self.sentence

    def is_doubled(self, translation: str) -> bool:
        """Return whether a prohibition is negated: `not forbidden`."""
        return self.doubled.search(translation.lower()) is not None


class NegationRules:
    """Detects negations in sentences of one language that is translated into another. Thread-safe."""

    def __init__(self, source: _Words, target: _Words) -> None:
        self._stems = source.stems.split()
        self._idioms = _pattern(source.idioms)
        self._negations, self._prohibitions = _pattern(source.negations), _pattern(source.prohibitions)
        self._counterparts = _pattern(f"{target.negations}|{target.prohibitions}|{target.equivalents}")
        self._doubled = _pattern(rf"(?:{target.negations})\s(?:\w+\s)?(?:{target.prohibitions})")
        self._source, self._target = source, target

    def of(self, sentence: str) -> Negation | None:
        """Return the negation of a sentence, or None."""
        sentence = sentence.lower()
        for stem in self._stems:  # a loop takes half the time of `any`
            if stem in sentence:
                break
        else:
            return None
        words = self._words(sentence)
        return Negation(sentence, self._counterparts, self._doubled, words) if words else None

    def _words(self, sentence: str) -> Alternatives:
        """Return the words of which a translation must have one; none if a sentence has no negation."""
        if self._prohibitions.search(sentence):
            return self._target.a_prohibition
        if not self._negations.search(sentence):
            return ()
        negations = set(self._negations.findall(self._idioms.sub(" ", sentence)))
        if not negations:
            return ()
        return (self._target.without,) if negations == {self._source.without} else self._target.a_negation


def negation_of(sentence: str, source: str, target: str) -> Negation | None:
    """Return the negation of a sentence; None if it has none, or if there are no words for one of the languages."""
    rules = negation_rules(source, target)
    return None if rules is None else rules.of(sentence)


@lru_cache(maxsize=256)
def negation_rules(source: str, target: str) -> NegationRules | None:
    """Return the rules for these languages; None if there are no words for one of them."""
    from_words, to_words = (_WORDS.get(language.partition("-")[0]) for language in (source, target))
    return None if from_words is None or to_words is None else NegationRules(from_words, to_words)


def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)")
