import random
from functools import partial

from server.http.protocols.openai.prompts import find_prompt
from tests.linear_time import assert_linear_time

PIECES = (
    "Translate from en to de, keep punctuation as input:\n\n",
    "Translate the Source Text below to German. ",
    "Source Text: ",
    "\n\nTranslated Text:",
    "translation from en to de of the academic text enclosed in 🔤.",
    "🔤 ",
    " 🔤",
    "from language 'en' to language 'de'",
    "from language 'a",
    "translate the following a text into ",
    'Text: "',
    "a" * 50,
)


def _hostile(kinds: list[str], num_pieces: int) -> tuple[str, str]:
    chance = random.Random(1)
    system = "".join(chance.choices(kinds, k=num_pieces // 2))
    user = "".join(chance.choices(kinds, k=num_pieces))
    return f"You are a professional, authentic machine translation engine.{system}", user


def _find(prompt: tuple[str, str]) -> None:
    system, user = prompt
    find_prompt(system, user)
    find_prompt("", user)


def test_a_hostile_prompt_takes_linear_time() -> None:
    chance = random.Random(1)
    for _ in range(60):
        kinds = chance.choices(PIECES, k=chance.randint(1, 3))
        assert_linear_time(partial(_hostile, kinds), _find, 4000)
