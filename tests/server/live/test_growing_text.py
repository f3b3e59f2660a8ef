import asyncio
import random

import pytest

from server.live.growing_text import GrowingText, Update
from server.live.policies import policy_of
from tests.server.live.conftest import Told

NUM_SESSIONS = 15  # with each policy
WORDS = ["Good", "morning.", "How", "are", "you", "today?", "The", "fox", "jumps", "5", "...", "tea,", "\n", "dog. "]


def _text(told: Told, policy: str = "align-att", frame: int = 2) -> GrowingText:
    return GrowingText(*told.languages, policy_of(policy, frame))


def _committed(update: Update) -> str:
    return "".join(piece.text for piece in update.pieces)


@pytest.mark.parametrize("policy", ["align-att", "local-agreement", "wait-k"])
def test_nothing_is_retracted_whatever_is_sent_and_whatever_a_model_writes(policy: str, random_model: Told) -> None:
    for seed in range(NUM_SESSIONS):
        asyncio.run(_random_session(random_model, policy, seed))


async def _random_session(told: Told, policy: str, seed: int) -> None:
    """Add and replace at random. What is committed must be what each sentence's last answer begins with."""
    draw = random.Random(seed)
    model, text = told.model(draw.choice((1, 3))), _text(told, policy, draw.randrange(4))
    sent, shown, settled, source = 0, "", 0, ""
    for _ in range(draw.randrange(3, 12)):
        for _ in range(draw.randrange(1, 4)):  # several updates while one is decoded
            if draw.random() < 0.25 and sent:
                start = draw.randrange(sent + 1)
                added = " ".join(draw.choices(WORDS, k=draw.randrange(3)))
                text.replace_from(start, added)
                sent = max(start + len(added), text.settled)
                source = source[:start] + added
            else:
                added = draw.choice(WORDS) + " "
                text.append(added)
                sent += len(added)
                source += added
            assert text.settled + len(text.text) == sent
        if draw.random() < 0.2:
            text.finish()
        update = await told.translate(text, model)
        shown += _committed(update)
        assert settled <= text.settled <= sent
        assert update.read == sent
        settled = text.settled
        for piece in update.pieces:
            assert 0 <= piece.start <= piece.end <= sent
        assert all(piece.text for piece in update.pieces)
    text.finish()
    last = await told.translate(text, model)
    assert not last.draft
    assert not text.text.strip()


def test_committed_text_is_the_beginning_of_the_answer(told: Told) -> None:
    async def told_word_by_word() -> tuple[list[str], str]:
        model, text, shown = told.model(), _text(told), [""]
        for word in ("My", "sister", "has", "bought", "a", "new", "red", "car."):
            text.append(f"{word} ")
            update = await told.translate(text, model)
            shown.append(shown[-1] + _committed(update))
        return shown, update.draft

    shown, draft = asyncio.run(told_word_by_word())
    assert shown[1:3] == ["", ""]  # nothing is known before the frame
    assert "Meine Schwester" in shown[6]
    assert shown[-1].endswith("gekauft.")
    assert not draft


def test_a_sentence_ends_with_its_mark_and_a_blank_but_not_with_an_abbreviation(told: Told) -> None:
    text = _text(told)
    text.append("Thank you, Dr. ")
    assert [each.closed for each in text.sentences(told.model())] == [False]
    text.append("Smith.")
    assert [each.closed for each in text.sentences(told.model())] == [False]
    text.append(" ")
    assert [each.closed for each in text.sentences(told.model())] == [True]


def test_pieces_name_the_words_that_they_rest_on(told: Told) -> None:
    text = _text(told)
    text.append("Good morning. Where is the station? ")
    update = asyncio.run(told.translate(text, told.model()))
    assert [(piece.text, piece.start, piece.end) for piece in update.pieces] == [
        ("Guten Morgen.", 0, 13),
        (" Wo ist der Bahnhof?", 14, 35),
    ]


def test_a_replacement_before_the_open_sentence_leaves_what_is_settled(told: Told) -> None:
    text = _text(told)
    text.append("Good morning. Where is the airport")
    asyncio.run(told.translate(text, told.model()))
    assert (text.settled, text.text) == (14, "Where is the airport")
    text.replace_from(0, "Good evening. Where is the station?")
    assert (text.settled, text.text) == (14, "Where is the station?")


def test_words_that_changed_while_a_sentence_was_decoded_count_as_unknown(told: Told) -> None:
    async def revised() -> str:
        text, model = _text(told, frame=0), told.model()
        text.append("My sister has bought a new red car and")
        then, sentences = text.text, text.sentences(model)
        [completion] = (await told.decoded({each: model.request(each) for each in sentences})).values()
        text.replace_from(19, "sold her house.")
        return _committed(text.take([(sentences[0], model.decoded(sentences[0].reading, completion))], then))

    assert asyncio.run(revised()).strip() in ("", "Meine", "Meine Schwester", "Meine Schwester hat")


def test_a_sentence_without_an_end_is_divided_before_the_model_cannot_take_it(told: Told) -> None:
    text, model = _text(told), told.model()
    text.append("and the dog and the cat and the house " * 60)
    sentences = text.sentences(model)
    assert len(sentences) > 1
    assert all(model.fits(each.text) for each in sentences)
    assert [each.closed for each in sentences] == [True] * (len(sentences) - 1) + [False]
