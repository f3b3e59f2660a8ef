import random
import time

from server.http.protocols.openai.prompts import find_prompt

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


def test_a_hostile_prompt_takes_linear_time() -> None:
    chance = random.Random(1)
    for _ in range(60):
        kinds = chance.choices(PIECES, k=chance.randint(1, 3))
        system = "You are a professional, authentic machine translation engine." + "".join(
            chance.choices(kinds, k=2000)
        )
        user = "".join(chance.choices(kinds, k=4000))
        started = time.process_time()
        find_prompt(system, user)
        find_prompt("", user)
        assert time.process_time() - started < 2.0
