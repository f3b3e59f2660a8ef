"""Numbers are named and not edited, repairs are those of the bundle, and a text is kept only for certain."""

import asyncio
import math
from dataclasses import replace

import pytest

from bundle.manifest import Repair
from server.interface.decoding_options import NO_OPTIONS, DecodingOptions
from server.interface.request import FinishReason, Request
from server.text.formality import Formality
from server.text.glossary import Glossary
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.repairs import doubt, lacks_any, lacks_parts, may_have_parts, parts, shortness
from server.translation.text_stream import TextStream
from server.translation.types import KeepReason, Translation, TranslationRequest, TranslationResult
from tests.fakes.rule_engine import Rule, RuleEngine, byte_bundle

ALL: tuple[Repair, ...] = ("numbers", "parts", "capitals")
PARTS = "The tea is on the table. The dog is in the house."


class Obedient(RuleEngine):
    """Writes what a search requires at the end of each answer."""

    def answers(self, request: Request) -> list[str]:
        """Return the hypotheses, with the first form of each required term."""
        required = [self.tokenizer.decode(list(forms[0])) for forms in request.params.required_terms]
        return [" ".join((each, *required)) for each in super().answers(request)]


def _engine(rule: Rule, *repairs: Repair, pair: tuple[str, str] = ("en", "de")) -> Obedient:
    return Obedient(byte_bundle(*pair, repairs=repairs), rule)


def _result(
    engine: RuleEngine,
    text: str,
    options: DecodingOptions = NO_OPTIONS,
    limits: TranslationLimits | None = None,
    **changes: object,
) -> TranslationResult:
    config = engine.bundle.config
    request = TranslationRequest((text,), config.source_languages[0], config.target_languages[0], options)
    request = replace(request, **changes)  # type: ignore[arg-type]  # fields
    return asyncio.run(Pipeline(engine, limits or TranslationLimits()).translate(request))


def _translate(engine: RuleEngine, text: str, *args: object, **changes: object) -> Translation:
    return _result(engine, text, *args, **changes).translations[0]  # type: ignore[arg-type]


# Numbers


@pytest.mark.parametrize(
    ("text", "answer", "missing", "invented"),
    [
        ("He has 4711 dogs.", "Er hat Hunde.", ("4711",), ()),
        ("He has dogs.", "Er hat 4711 Hunde.", (), ("4711",)),
        ("He has 4711 dogs.", "Er hat 4712 Hunde.", ("4711",), ("4712",)),
        ("He has 350 of 475 dogs.", "Er hat 475 von 350 Hunden.", (), ()),
        ("It costs 1,250.50 euros.", "Es kostet 1.250,50 Euro.", (), ()),
        ("The {n4711} has 25 dogs.", "Der {n4711} hat Hunde.", ("25",), ()),
    ],
)
@pytest.mark.parametrize("format_", ["text", "html", "xml"])
def test_lost_and_invented_numbers_are_named_and_the_answer_stays(
    text: str, answer: str, missing: tuple[str, ...], invented: tuple[str, ...], format_: str
) -> None:
    engine = _engine(lambda _: answer)
    result = _result(engine, text, format=format_)
    [found] = result.translations
    assert found.text == answer
    assert (found.missing_numbers, found.invented_numbers) == (missing, invented)
    assert result.outcomes == ({"numbers_differ": 1} if missing or invented else {})
    assert len(engine.batches) == 1


@pytest.mark.parametrize(
    ("pair", "text", "written"),
    [
        (("en", "de"), "20,000 dogs", "20.000 dogs"),
        (("de", "en"), "1.250.000 Hunde", "1,250,000 Hunde"),
        (("en", "de"), "Upgrade to 1.10 or 2,5 now", "Upgrade to 1.10 or 2,5 now"),
        (("en", "de"), "Call 555,123 or {x20,000}", "Call 555.123 or {x20,000}"),
        (("en", "de"), "see 1,2,3 and v1,000", "see 1,2,3 and v1,000"),
        (("en", "zh"), "20,000 dogs", "20,000 dogs"),
        (("x-a", "de"), "20,000 dogs", "20,000 dogs"),
    ],
)
def test_a_copied_grouped_number_alone_is_written_as_the_target_writes_it(
    pair: tuple[str, str], text: str, written: str
) -> None:
    engine = _engine(str, pair=pair)
    options = DecodingOptions(if_already_target="translate")
    assert _translate(engine, text, options).text == written
    assert _translate(engine, text, options.with_changes(localize_numbers=False)).text == text
    tagged = "<p><b>" + text.replace(" ", "</b> ", 1) + "</p>"
    written_tagged = "<p><b>" + written.replace(" ", "</b> ", 1) + "</p>"
    assert _translate(engine, tagged, options, format="html").text == written_tagged


# Repairs


def test_a_bundle_without_repairs_gets_none() -> None:
    for text, rule in (
        ("He has 4711 dogs.", lambda _: ["Er hat Hunde.", "Er hat 4711 Hunde."]),
        (PARTS, lambda _: "Der Tee ist da."),
        ("WHERE IS THE DOG?", str.title),
    ):
        engine = _engine(rule)
        found = _translate(engine, text, DecodingOptions(split=True))
        assert found.repaired == ()
        assert found.text == engine.answers(engine.batches[0][0])[0] or "\n" in text or text == PARTS
        assert len(engine.batches) == 1


def test_another_hypothesis_of_the_same_search_comes_before_a_second_one() -> None:
    engine = _engine(lambda _: ["Er hat Hunde.", "Er hat 12 Hunde.", "Er hat 4711 Hunde."], "numbers")
    found = _translate(engine, "He has 4711 dogs.")
    assert (found.text, found.missing_numbers) == ("Er hat 4711 Hunde.", ())
    assert [each.repair for each in found.repaired] == ["numbers"]
    assert len(engine.batches) == 1


def test_a_number_that_no_hypothesis_has_is_required_once() -> None:
    engine = _engine(lambda _: ["Er hat Hunde."], "numbers")
    found = _translate(engine, "He has 4711 dogs.")
    assert found.text == "Er hat Hunde. 4711"
    assert [each.repair for each in found.repaired] == ["numbers"]
    assert len(engine.batches) == 2


def test_a_required_number_far_from_its_place_in_the_source_is_named_and_the_first_answer_stays() -> None:
    engine = _engine(lambda _: ["Hunde sind in seinem Haus."], "numbers")
    found = _translate(engine, "4711 dogs are in his house.")
    assert (found.text, found.missing_numbers, found.repaired) == ("Hunde sind in seinem Haus.", ("4711",), ())
    assert len(engine.batches) == 2


def test_a_number_that_is_still_missing_is_named_and_the_first_answer_stays() -> None:
    engine = RuleEngine(byte_bundle(repairs=ALL), lambda _: "Er hat Hunde.")
    found = _translate(engine, "He has 4711 dogs.")
    assert (found.text, found.missing_numbers, found.repaired) == ("Er hat Hunde.", ("4711",), ())
    assert len(engine.batches) == 2


def test_parts_are_translated_by_themselves_if_one_is_missing() -> None:
    text = PARTS.replace(". The", "; the")
    engine = _engine(lambda read: read.partition(";")[0], "parts")
    found = _translate(engine, text)
    assert found.text.rstrip(".") == text.rstrip(".")
    assert [each.repair for each in found.repaired] == ["parts"]
    assert len(engine.batches) == 2


def test_a_part_that_stays_missing_is_named() -> None:
    engine = _engine(lambda _: "", "parts")
    found = _translate(engine, PARTS.replace(". The", "; the"))
    assert len(found.incomplete) == 1
    assert found.repaired == ()


def test_capitals_are_read_as_small_letters_and_written_again() -> None:
    engine = _engine(str, "capitals")
    found = _translate(engine, "WHERE IS THE {name} DOG?")
    assert engine.read == ["Where is the {name} dog?"]
    assert found.text == "WHERE IS THE {name} DOG?"
    assert [each.repair for each in found.repaired] == ["capitals"]


@pytest.mark.parametrize(
    ("source", "text"), [("en", "NATO"), ("en", "The NATO and the EU met."), ("ru", "где это"), ("ja", "日本へ行く")]
)
def test_acronyms_and_mixed_texts_are_read_as_they_are(source: str, text: str) -> None:
    engine = _engine(str, "capitals", pair=(source, "de"))
    assert _translate(engine, text).text == text
    assert engine.read == [text]


@pytest.mark.parametrize(
    ("limits", "changes"),
    [
        (TranslationLimits(repair=False), {}),
        (TranslationLimits(), {"options": DecodingOptions(repair=False)}),
        (TranslationLimits(), {"options": DecodingOptions(num_hypotheses=2)}),
        (TranslationLimits(), {"options": DecodingOptions(target_prefix="Er")}),
        (TranslationLimits(), {"options": DecodingOptions(max_new_tokens=500)}),
        (TranslationLimits(), {"options": DecodingOptions(temperature=0.5)}),
        (TranslationLimits(), {"glossary": Glossary({"dogs": "Hunde"})}),
        (TranslationLimits(), {"formality": Formality.FORMAL}),
    ],
)
def test_repairs_can_be_switched_off_and_give_way_to_other_wishes(
    limits: TranslationLimits, changes: dict[str, object]
) -> None:
    engine = RuleEngine(byte_bundle(repairs=ALL), lambda _: "ER HAT HUNDE.")
    found = _translate(engine, "HE HAS 4711 DOGS HERE.", limits=limits, **changes)
    assert engine.read == ["HE HAS 4711 DOGS HERE."]
    assert (found.missing_numbers, found.repaired) == (("4711",), ())


def test_a_request_may_switch_repairs_on_again() -> None:
    engine = _engine(str, "capitals")
    _translate(engine, "WHERE IS THE DOG?", DecodingOptions(repair=True), TranslationLimits(repair=False))
    assert engine.read == ["Where is the dog?"]


@pytest.mark.parametrize("text", ["He has 4711 {a} and %s; she has 350 {b}.", "`x` and 4711 https://a.org dogs"])
def test_there_are_at_most_two_further_attempts(text: str) -> None:
    for rule in (lambda _: "", lambda read: read[:5], lambda read: f"{read} {read}", lambda _: "X1 X2"):
        engine = RuleEngine(byte_bundle(repairs=ALL), rule)
        _translate(engine, text)
        assert len(engine.batches) <= 3


def test_an_answer_that_a_limit_ended_is_named() -> None:
    for repairs in ((), ALL):
        engine = RuleEngine(byte_bundle(repairs=repairs), str)
        engine.finish_reason = FinishReason.LENGTH
        assert _translate(engine, "The dog is here.").incomplete == ("The dog is here.",)


def test_a_stream_of_repaired_sentences_is_the_answer() -> None:
    async def streamed() -> tuple[str, str]:
        engine = _engine(lambda read: [read.replace("4711", ""), read][: 1 + ("tea" in read)], *ALL)
        stream = TextStream()
        text = "He has 4711 dogs. WHERE IS THE DOG? The tea {name} has 4711 dogs."
        done = await Pipeline(engine, TranslationLimits()).translate(TranslationRequest((text,), "en", "de"), stream)
        taken = ""
        while stream.has_news:
            taken += "".join(delta.text for delta in stream.take())
        return taken, done.translations[0].text

    taken, text = asyncio.run(streamed())
    assert taken == text


# What is kept

_GERMAN = "Das Haus am Ende der Straße ist schon seit vielen Jahren alt."


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("12:30 – 50 % …", KeepReason.NO_WORDS),
        ("{name} https://example.org", KeepReason.NO_WORDS),
        (_GERMAN, KeepReason.ALREADY_IN_TARGET_LANGUAGE),
        (f"<p>{_GERMAN}</p>", KeepReason.ALREADY_IN_TARGET_LANGUAGE),
        ("Das Haus", None),
        ("Haus", None),
        (f"{_GERMAN} The dog that lives in it is very old.", None),
        ("The dog at the end of the street is very old.", None),
        ("x", None),
        ("asdf qwer yxcv jklö", None),
        ("🎉 ok", None),
    ],
)
def test_a_text_is_kept_only_without_letters_or_if_it_is_certainly_in_the_target_language(
    text: str, reason: KeepReason | None
) -> None:
    engine = _engine(str)
    found = _translate(engine, text, format="html" if text.startswith("<") else "text")
    assert [each.reason for each in found.kept] == ([] if reason is None else [reason])
    assert found.text == text
    assert bool(engine.batches) is (reason is None)


def test_a_request_may_have_texts_in_the_target_language_translated() -> None:
    engine = _engine(str)
    assert _translate(engine, _GERMAN, DecodingOptions(if_already_target="translate")).kept == ()
    assert len(engine.batches) == 1


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("zh", "这是一句很长的中文句子，应该翻译。"),
        ("ja", "これは翻訳されるべき文です。"),
        ("ru", "Это предложение нужно перевести."),
    ],
)
def test_texts_of_other_scripts_are_translated(source: str, text: str) -> None:
    engine = _engine(str, pair=(source, "en"))
    assert _translate(engine, text).kept == ()
    assert engine.batches


LANGUAGES = ("en", "de")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I am here.", ["I am here."]),
        ("Mr. Smith paid 3.50 dollars.", ["Mr. Smith paid 3.50 dollars."]),
        ("I am here. Go away!", ["I am here.", "Go away!"]),
        ("I came; he left; she stayed.", ["I came", "he left", "she stayed."]),
        ("I came (he left early).", ["I came", "he left early"]),
        ('"Are you here?" "Yes, I am." said the man', ["Are you here?", "Yes, I am.", "said the man"]),
        ("„Bist du hier?“ – „Ja, bin ich.“", ["Bist du hier?", "Ja, bin ich."]),
        ("first line\nsecond line", ["first line", "second line"]),
        ('He said "no" (twice) to me.', ['He said "no" (twice) to me.']),
        ("... !?", []),
    ],
)
def test_parts_are_sentences_and_what_marks_divide(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in parts(text, "en")] == expected


def test_a_text_with_several_parts_has_a_mark_between_them() -> None:
    assert not may_have_parts("I am here.")
    assert not may_have_parts("I am here, and you are there…")
    assert may_have_parts("I am here. Go away!")
    assert may_have_parts("I came (he left early).")


def test_a_missing_part_and_a_far_too_short_answer_are_lacking() -> None:
    assert lacks_parts("I am here. Go away!", "Ich bin hier.", LANGUAGES)
    assert not lacks_parts("I am here. Go away!", "Ich bin hier. Geh weg!", LANGUAGES)
    assert not lacks_parts("I am here. Go away!", "Ich bin hier (geh jetzt weg).", LANGUAGES)
    assert lacks_parts("This sentence has more than forty characters in it.", "Dieser Satz.", LANGUAGES)
    assert not lacks_parts("Thank you very much.", "Danke.", LANGUAGES)


def test_a_chinese_character_is_as_long_as_a_part_of_a_word() -> None:
    source = "The government announced new measures against air pollution in large cities on Tuesday."
    assert not lacks_parts(source, "政府周二宣布了治理大城市空气污染的新措施。", ("en", "zh"))
    assert lacks_parts(source, "政府周二宣布。", ("en", "zh"))
    assert lacks_parts("政府周二宣布了治理大城市空气污染的新措施。", "On Tuesday.", ("zh", "en"))


def test_unlikely_translations_of_several_parts_are_doubtful() -> None:
    source, translation = "I am here today. Go away now!", "Ich bin heute hier. Geh jetzt weg!"
    assert doubt(source, translation, LANGUAGES, -0.2) < 1 < doubt(source, translation, LANGUAGES, -0.4)
    assert doubt(source, translation, LANGUAGES, math.nan) < 1
    assert doubt("I am here today, go away now!", "Ich bin da.", LANGUAGES, -2.0) == 0
    assert doubt(source, "Ich bin heute hier.", LANGUAGES, -0.1) == math.inf


def test_two_long_parts_may_be_less_likely_than_short_ones() -> None:
    source = (
        "The committee met again on Monday morning in the town hall of Berlin. "
        "It has not yet decided about the new building behind the station."
    )
    translation = (
        "Der Ausschuss traf sich am Montagmorgen wieder im Rathaus von Berlin. "
        "Er hat über das neue Gebäude hinter dem Bahnhof noch nicht entschieden."
    )
    assert doubt(source, translation, LANGUAGES, -1.0) < 1 < doubt(source, translation, LANGUAGES, -1.3)


def test_a_part_that_is_much_shorter_than_the_others_is_doubtful() -> None:
    source = "So I put the book away. Tom began to eat his lunch."
    assert doubt(source, "Also lege ich das Buch beiseite. Tom.", LANGUAGES, -0.2) > 1
    assert shortness(source, "Also lege ich das Buch weg. Tom begann zu essen.", LANGUAGES) < 1
    assert shortness(source, "Also lege ich das Buch weg. Tom begann. Er aß.", LANGUAGES) < 1
    assert shortness(source, "Ich lege das. Tom begann.", LANGUAGES) > 1


def test_a_translation_that_has_hardly_anything_of_the_translation_of_a_part_lacks_it() -> None:
    alone = ["The dog sleeps.", "It is raining today."]
    assert not lacks_any("The dog is sleeping. Today it rains.", alone)
    assert lacks_any("The dog is sleeping. Yes.", alone)
    assert not lacks_any("", ["ab", "?"])
