"""Numbers, dates and times in the notation of the target language, in answers of a model and alone."""

import asyncio

import pytest

from bundle.loading import Bundle
from server.interface.decoding_options import DecodingOptions
from server.text.protection import found_items
from server.text.protection.means import Means
from server.text.spelled_out import spelled_out
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import Translation, TranslationRequest
from tests.fakes.answering import Answering
from tests.fakes.echo import EchoGenerator, make_bundle
from tests.server.text.identity import LETTERS


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return make_bundle(
        tmp_path_factory.mktemp("notation"), sentences=[*LETTERS, "the “dog” jumps „at“ 20,000 here", "£ €"]
    )


def _translate(engine: EchoGenerator, *texts: str, localizes: bool = True) -> list[Translation]:
    request = TranslationRequest(texts, "en", "de", DecodingOptions(localize_numbers=localizes))
    return asyncio.run(Pipeline(engine, TranslationLimits()).translate(request)).translations


def test_a_copied_number_is_written_in_the_notation_of_the_target(bundle: Bundle) -> None:
    texts = ("It is 20,000 here.", "It is 1998 here.", "It is version 2.0.1 here.")
    written = [each.text for each in _translate(EchoGenerator(bundle), *texts)]
    assert written == ["It is 20.000 here.", "It is 1998 here.", "It is version 2.0.1 here."]
    assert [each.text for each in _translate(EchoGenerator(bundle), *texts, localizes=False)] == list(texts)


def test_an_answer_in_the_notation_of_the_target_stays_as_it_is(bundle: Bundle) -> None:
    engine = Answering(bundle, {"It is 20,000 here.": "It is 20.000 here."})
    [found] = _translate(engine, "It is 20,000 here.")
    assert found.text == "It is 20.000 here."
    assert [item.means for item in found.protected] == [Means.AS_IS]


@pytest.mark.parametrize(
    ("text", "answer", "translation"),
    [
        ("It is 2.6e2 now.", "It is 2,6e2 now.", "It is 2,6e2 now."),
        ("It is 2.6e2 now.", "It is 2.6e2 now.", "It is 2,6e2 now."),
        ("We meet at 2 p.m. here.", "We meet at 3.m. here.", "We meet at 14:00 here."),
        ("We meet at 3:30 PM here.", "We meet at 15:30 here.", "We meet at 15:30 here."),
        ("It is open 9am-5pm here.", "It is open 9 here.", "It is open 9:00–17:00 here."),
        ("the “dog” jumps", "the “dog” jumps", "the „dog“ jumps"),
        ("the “dog” jumps", "the „dog“ jumps", "the „dog“ jumps"),
        ("Due on March 3, 2026.", "Due on March 3th, 2026.", "Due on 3. März 2026."),
        ("He is 1.85 m tall.", "He is 1.85 m0 tall.", "He is 1,85 m tall."),
        ("He ran the 100 m here.", "He ran the 100 mm here.", "He ran the 100 m here."),
        ("Question 7: is it?", "Frage 07: is it?", "Frage 7: is it?"),
        ("Charles III is here.", "Charles III is here.", "Charles III. is here."),
        ("We saw Charles III.", "We saw Charles III.", "We saw Charles III."),
        ("We saw World War II here.", "We saw World War II here.", "We saw World War II here."),
        ("No. 7 is here.", "Nein. 7 is here.", "Nr. 7 is here."),
        ("It is no. 2024-118.", "It is nein. 2024-118.", "It is Nr. 2024-118."),
        ("It is $1,250.50 now.", "It is $1.250,50 now.", "It is 1.250,50\u00a0$ now."),
        ("It is $60,000 now.", "It is $60.000 $ now.", "It is 60.000\u00a0$ now."),
        ("It is $60,000 now.", "It is $60.000 Dollar now.", "It is 60.000\u00a0$ now."),
        ("It is $2 million now.", "It is $2 Millionen now.", "It is 2 Millionen\u00a0$ now."),
        ("It was 3:2 on the house.", "It was 3:2 am house.", "It was 3:2 am house."),
        ("It is **** 1234 here.", "It is **** ** * 12 here.", "It is **** 1234 here."),
        ("It is 3.5 km/h here.", "It is 3 km/h km/hm here.", "It is 3,5 km/h here."),
        ("It was 3:2 on the house.", "It was 3:2 pm house.", "It was 3:2 house."),
        ("Is it 3:30 pm on it?", "Is it 4:30 am house?", "Is it 15:30 am house?"),
        ("Closed on January 2 here.", "Closed on 3. Januar Uhr here.", "Closed on 2. Januar here."),
        ("the dog jumps at half past two", "the dog jumps at 2:30", "the dog jumps at 2:30"),
        ("the dog jumps at half past two", "the dog jumps at 1:30", "the dog jumps at halb drei"),
        ("Is no. 4711 here?", "Is nein. 4711 here?", "Is Nr. 4711 here?"),
        ("3rd place is here.", "3rd Ort is here.", "3. Ort is here."),
        ("The dog is 3rd.", "The dog is 3rd.", "The dog is 3."),
        ("the dog (2) is here.", "the dog (2nd) is here.", "the dog (2) is here."),
        ("Was it Feb 16, 1989 here?", "Was it Feb 16.02.1989, 1989 here?", "Was it 16.02.1989 here?"),
        ("It needs 970 kWh here.", "It needs 970 KWh here.", "It needs 970 kWh here."),
        ("It is 3.5 km here.", "It is 3 km kmm here.", "It is 3,5 km here."),
        ("It is 3 kWh here.", "It is 3 kWh kh here.", "It is 3 kWh here."),
        ("the 4711 here.", "the 4711 here.", "the 4711 here."),
        ("The 4711 is here.", "is the 4711 here.", "Is the 4711 here."),
        ("It is 4711-B here.", "It is 4711-Bug here.", "It is 4711-B here."),
        ("It is 3 p.m. now.", "It is 3 pm now.", "It is 15:00 now."),
        ("It is 3 p.m. now.", "It is 3 pms now.", "It is 15:00 now."),
        ("Open 9:00-13:00 here.", "Open 9:00-13:000 here.", "Open 9:00-13:00 here."),
        ("It was 4:2 on the house.", "It was 4:22 pm house.", "It was 4:2 house."),
        ("Half past two is here.", "Half past two is here.", "Halb drei is here."),
        ("It is $12.5bn now.", "It is $12.5bn now.", "It is 12,5 Milliarden\u00a0$ now."),
        ("It is US$ 20 now.", "It is US $ 20 now.", "It is 20\u00a0US$ now."),
        ("It is CA$2 million now.", "It is CA $2 Millionen now.", "It is 2 Millionen\u00a0CA$ now."),
        ("It is 5 mL now.", "It is 5 ml now.", "It is 5 mL now."),
        ("It is 5 mL now.", "It is 5 mlisch now.", "It is 5 mL now."),
        ("It was $12.5bn in $.", "It was 12.5bn in $.", "It was 12,5 Milliarden\u00a0$ in $."),
        ("It has 500 mg now.", "It has 500 mgisch now.", "It has 500 mg now."),
        ("He ran the 100 m here.", "He ran the 100 m m here.", "He ran the 100 m here."),
        ("He ran the 100 m here.", "He ran the 100 mit here.", "He ran the 100 m mit here."),
    ],
)
def test_an_item_is_written_in_the_notation_of_the_target(
    bundle: Bundle, text: str, answer: str, translation: str
) -> None:
    read = spelled_out("en", "de").in_full(text.replace("p.m. ", "pm "))
    [found] = _translate(Answering(bundle, {read: answer}), text)
    assert found.text == translation


@pytest.mark.parametrize(
    ("sign", "misread", "in_dollars", "translation"),
    [
        ("$", "They paid%16 .", "They paid 350 Dollar.", "They paid 15\u00a0$."),
        ("£", "They paid 15 Kissen.", "They paid 350 Dollars.", "They paid 15\u00a0£."),
        ("€", "They paid 15.", "They paid 350-Dollar-Noten.", "They paid 15\u00a0€-Noten."),
        ("€", "They paid 15.", "They paid $350 Dollar.", "They paid 15\u00a0€."),
    ],
)
def test_an_amount_whose_currency_the_model_misread_is_sent_in_dollars(
    bundle: Bundle, sign: str, misread: str, in_dollars: str, translation: str
) -> None:
    answers = {f"They paid {sign}15.": misread, "They paid 350 dollars.": in_dollars}
    [found] = _translate(Answering(bundle, answers), f"They paid {sign}15.")
    assert found.text == translation
    assert [item.means for item in found.protected] == [Means.STAND_IN]


def test_an_amount_in_dollars_whose_answer_lacks_their_name_is_lost(bundle: Bundle) -> None:
    answers = {"They paid £15.": "They paid 15 Kissen.", "They paid 350 dollars.": "They paid 350 Kissen."}
    answers |= {"They paid Tom.": "They paid Kissen.", "They paid": "They paid"}
    [found] = _translate(Answering(bundle, answers), "They paid £15.")
    assert found.text == "They paid 15\u00a0£."
    assert [item.means for item in found.protected] == [Means.APART]


def test_a_time_in_words_has_no_clock_behind_it(bundle: Bundle) -> None:
    answers = {"Is it half past two?": "Is it 2?", "Is it 350?": "Is it 350 Uhr?"}
    [found] = _translate(Answering(bundle, answers), "Is it half past two?")
    assert found.text == "Is it halb drei?"


def test_a_misread_currency_of_a_long_sentence_is_corrected(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found_items, "_RETRIED", 10)
    [found] = _translate(Answering(bundle, {"They paid $15.": "They paid%16 ."}), "They paid $15.")
    assert found.text == "They paid 15\u00a0$."
    assert [item.means for item in found.protected] == [Means.CORRECTED]


def test_an_item_with_an_unknown_sign_is_compared_in_the_notation_of_the_target(bundle: Bundle) -> None:
    [found] = _translate(Answering(bundle, {"It is Tom here.": "is Tom here."}), "It is ±0.5 km here.")
    assert found.text == "Is ±0,5 km here."
    assert [item.means for item in found.protected] == [Means.NAME]


@pytest.mark.parametrize(
    ("text", "answer", "translation"),
    [
        ("Der 3., 4. und 5. Weg ist da.", "the 3. 4. and 5. way is here.", "The 3rd, 4th and 5th way is here."),
        ("1., 2. und 3. Weg", "1. 2. and 3. way", "1st, 2nd and 3rd way"),
    ],
)
def test_german_ordinals_are_those_of_english(
    tmp_path_factory: pytest.TempPathFactory, text: str, answer: str, translation: str
) -> None:
    folder = tmp_path_factory.mktemp("ordinals")
    bundle = make_bundle(folder, languages=("de", "en"), sentences=[*LETTERS, "the 3rd, 4th and 5th way is here."])
    request = TranslationRequest((text,), "de", "en")
    [found] = asyncio.run(
        Pipeline(Answering(bundle, {text: answer}), TranslationLimits()).translate(request)
    ).translations
    assert found.text == translation


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        ("5 January 2025", "5. Januar 2025"),
        ("$1,249.99", "1.249,99\u00a0$"),
        ("3.5 million euros", "3,5 Millionen Euro"),
        ("8 a.m.", "8:00"),
        ("1,250", "1,250"),
        ("2.0", "2.0"),
        ("12/31/2024", "12/31/2024"),
        ("report.pdf", "report.pdf"),
    ],
)
def test_a_value_alone_is_localized_if_it_has_words(bundle: Bundle, text: str, translation: str) -> None:
    engine = EchoGenerator(bundle)
    [found] = _translate(engine, text)
    assert (found.text, engine.batches) == (translation, [])
    assert _translate(engine, text, localizes=False)[0].text == text
