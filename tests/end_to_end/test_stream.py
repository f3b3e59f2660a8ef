"""Streams of the default model over a real connection: their parts are the plain answer, also in company."""

import asyncio
import json
import random
import signal
from pathlib import Path

import httpx2
import pytest

from tests.end_to_end.servers import PATIENCE_SECONDS, Served, gauge
from tests.fakes.event_stream import read_events, texts_of

SENTENCES = (
    (Path(__file__).resolve().parents[2] / "loadtest" / "workload" / "sentences.txt")
    .read_text(encoding="utf-8")
    .splitlines()
)

_ODD_TEXTS = [
    "",
    " \n\t\n",
    "***",
    "🎉 Good morning 🎉🎉! How are you?\r\n\r\n— 12:30 —\n\n  I am here.  ",
    "我 love 東京 and ラーメン. שלום!",
    "Cafe\N{COMBINING ACUTE ACCENT} ﬁne, na\N{COMBINING DIAERESIS}ive. 👩\N{ZERO WIDTH JOINER}💻 works.",
    "\ud800 and \x00 </s> <pad> >>de<< <0xE4> ▁",
    "One.\u2028Two.\u0085Three.\x0bFour.\x0cFive.",
    "data: event\n\nevent: done\ndata: {}\n\n",
]


def _post(client: httpx2.Client, body: dict[str, object]) -> httpx2.Response:
    # Not json=body: that way a lone surrogate would not leave the client.
    headers = {"Content-Type": "application/json"}
    answer = client.post("/v1/translate", content=json.dumps(body), headers=headers)
    assert answer.status_code == 200, answer.text
    return answer


def _texts(answer: httpx2.Response) -> list[str]:
    return [translation["text"] for translation in answer.json()["translations"]]


@pytest.mark.parametrize(("beam_size", "texts_are_odd"), [(1, True), (4, False)])
def test_the_pieces_of_many_texts_are_their_plain_answers(served: Served, beam_size: int, texts_are_odd: bool) -> None:
    everyday = [*SENTENCES[:30], "\n".join(SENTENCES[30:40]), " ".join(SENTENCES[40:50])]
    texts = [*_ODD_TEXTS, *everyday[:3]] if texts_are_odd else everyday
    body: dict[str, object] = {"text": texts, "beam_size": beam_size, "num_hypotheses": beam_size}
    with served.client() as client:
        plain = _post(client, body)
        streamed = _post(client, body | {"stream": True}).text
    assert texts_of(streamed, len(texts)) == _texts(plain)
    *pieces, (name, last) = read_events(streamed)
    assert all(name == "text" and piece["text"] for name, piece in pieces)
    num_written = sum(map(bool, _texts(plain)))
    # More pieces come, the slower the model is for its reader.
    assert len(pieces) >= num_written
    assert name == "done"
    assert last.pop("timings")
    assert last == plain.json()


def test_a_long_text_with_spans_comes_long_before_its_end_as_without_a_stream(served: Served) -> None:
    text = " ".join(f"{sentence} It was in {{place_{number}}}." for number, sentence in enumerate(SENTENCES * 2))
    # A stream is not repaired for missing parts.
    body: dict[str, object] = {"text": text, "repair": False}
    with served.client() as client:
        with client.stream("POST", "/v1/translate", json=body | {"stream": True}) as answer:
            lines = answer.iter_lines()
            first = [next(lines), next(lines)]
            num_unfinished = gauge(client, "kvasir_requests_waiting") + gauge(client, "kvasir_requests_running")
            streamed = "\n".join([*first, *lines, ""])
        plain = _post(client, body)
    assert num_unfinished > 0
    assert texts_of(streamed, 1) == _texts(plain)
    assert read_events(streamed)[-1][1]["translations"] == plain.json()["translations"]


def test_streams_and_plain_requests_at_once_get_what_each_gets_alone(served: Served) -> None:
    drawn = random.Random(3)
    bodies: list[dict[str, object]] = [
        {
            "text": " ".join(drawn.sample(SENTENCES, drawn.randint(1, 3))),
            "beam_size": drawn.choice((1, 1, 2, 4)),
            "max_new_tokens": drawn.choice((5, 256)),
            "stream": number % 2 == 0,
        }
        for number in range(30)
    ]

    async def ask_all() -> list[httpx2.Response]:
        limits = httpx2.Limits(max_connections=len(bodies))
        async with httpx2.AsyncClient(base_url=served.url, timeout=PATIENCE_SECONDS, limits=limits) as client:
            return list(await asyncio.gather(*(client.post("/v1/translate", json=body) for body in bodies)))

    together = asyncio.run(ask_all())
    with served.client() as client:
        for body, answer in zip(bodies, together, strict=True):
            alone = _post(client, body | {"stream": False})
            if not body["stream"]:
                assert answer.json() == alone.json()
                continue
            assert texts_of(answer.text, 1) == _texts(alone)
            assert read_events(answer.text)[-1][1]["translations"] == alone.json()["translations"]


def test_a_stream_is_the_same_from_memory_and_is_finished_after_sigterm(remembering: Served) -> None:
    body: dict[str, object] = {"text": "\n".join(SENTENCES[:10] * 2), "stream": True}
    long = {"text": "".join(f"I would like to go home at {hour} now. " for hour in range(300)), "beam_size": 8}
    with remembering.client() as client:
        decoded, kept = _post(client, body).text, _post(client, body).text
        assert texts_of(kept, 1) == texts_of(decoded, 1) == _texts(_post(client, body | {"stream": False}))
        with client.stream("POST", "/v1/translate", json=long | {"stream": True}) as answer:
            lines = answer.iter_lines()
            first = next(lines)
            remembering.process.send_signal(signal.SIGTERM)
            streamed = "\n".join([first, *lines, ""])
    *_, (name, last) = read_events(streamed)
    assert name == "done"
    assert [translation["text"] for translation in last["translations"]] == texts_of(streamed, 1)  # type: ignore[attr-defined]
    assert remembering.process.wait(PATIENCE_SECONDS) == 0
