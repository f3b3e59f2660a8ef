"""Requests that share the engine over HTTP: their answers do not change, and short ones do not wait for long ones."""

import asyncio
import random
import threading
import time

import httpx2

from tests.end_to_end.servers import PATIENCE_SECONDS, Served, gauge, until

NUM_REQUESTS = 200

_PARTS = (
    "Good morning.",
    "Where is the railway station?",
    "I would like a cup of tea, please.",
    "Tom said that he had never seen the sea before, and that he wanted to go there in the summer.",
    "Yes.",
    "The children are playing in the garden while their mother is reading a book.",
    "It is raining, so we will stay at home and watch a film.",
)


def _bodies() -> list[dict[str, object]]:
    choose = random.Random(7)
    return [
        {
            "text": " ".join(choose.sample(_PARTS, choose.randint(1, 2))),
            "beam_size": choose.choice((1, 1, 1, 2, 4)),
            "length_penalty": choose.choice((0.6, 1.0)),
            "max_new_tokens": choose.choice((8, 40, 256)),
            "return_scores": choose.choice((True, False)),
        }
        for _ in range(NUM_REQUESTS)
    ]


def _without_scores(answer: httpx2.Response) -> tuple[dict[str, object], float]:
    assert answer.status_code == 200, answer.text
    [translation] = answer.json()["translations"]
    return translation, translation.pop("score", 0.0)


def test_two_hundred_at_once_get_the_answers_they_get_alone(served: Served) -> None:
    bodies = _bodies()

    async def ask_all() -> list[httpx2.Response]:
        limits = httpx2.Limits(max_connections=NUM_REQUESTS)
        async with httpx2.AsyncClient(base_url=served.url, timeout=PATIENCE_SECONDS, limits=limits) as client:
            return list(await asyncio.gather(*(client.post("/v1/translate", json=body) for body in bodies)))

    together = [_without_scores(answer) for answer in asyncio.run(ask_all())]
    with served.client() as client:
        alone = [_without_scores(client.post("/v1/translate", json=body)) for body in bodies]
    assert [translation for translation, _ in together] == [translation for translation, _ in alone]
    assert max(abs(one - other) for (_, one), (_, other) in zip(together, alone, strict=True)) < 1e-4


def test_three_words_overtake_a_hundred_and_fifty_that_are_being_decoded(served: Served) -> None:
    answered: list[float] = []

    def ask_long() -> None:
        with served.client() as client:
            text = " ".join(["the little dog saw the big cat and"] * 19)
            answer = client.post("/v1/translate", json={"text": text, "beam_size": 8})
            answered.append(time.monotonic())
            assert answer.status_code == 200

    with served.client() as client:
        asking = threading.Thread(target=ask_long)
        asking.start()
        until(lambda: gauge(client, "kvasir_requests_running") > 0)
        short = client.post("/v1/translate", json={"text": "I am here.", "beam_size": 1})
        short_answered = time.monotonic()
        assert short.status_code == 200
        asking.join()
    assert short_answered < answered[0]
