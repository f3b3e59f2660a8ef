"""Live translation: quality against lag for each policy, and the delay of a server with many speakers.

    python -m benchmarks.live quality BUNDLE --data FILE.tsv [--join 3] [--limit 300] [--plot FILE.png]
    python -m benchmarks.live delay BUNDLE --data FILE.tsv [--speakers 20] [--seconds 30]

`quality` adds one word at a time to every text and decodes all of them together, so it depends on no clock. BLEU of
what was committed stands next to that of whole sentences. Lag counts words: average lagging (Ma et al. 2019) and
length-adaptive average lagging (Papi et al. 2022), as SimulEval defines them for text.

`delay` speaks 2.5 words a second in each session, and measures the time from the arrival of a word until all up to it
is translated; and the time of ordinary requests, five a second, with the speakers and without. All of it runs on one
thread, and the clock counts its processor time: other programs on the machine change the figures little.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from sacrebleu.metrics import BLEU

from benchmarks.workloads import read_lines
from bundle.loading import load_bundle
from server.interface.request import Completion, Request, SentenceParams, Timings
from server.live.decoding import LiveModel
from server.live.growing_text import GrowingText
from server.live.policies import policy_of
from server.live.session import Input, LiveOptions, LiveSession
from server.text.segmentation.sentences import sentences
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import TranslationRequest
from server.workers.stepped_engine import SteppedEngine

_WORDS_PER_SECOND = 2.5
_FRAMES = {"align-att": (1, 2, 3, 4, 6, 8), "wait-k": (1, 3, 5, 7, 9), "local-agreement": (0,)}
_TITLES = {"align-att": "AlignAtt", "wait-k": "wait-k", "local-agreement": "local agreement"}
_PAUSE_SECONDS = 0.2  # between ordinary requests

app = typer.Typer()
Data = Annotated[list[Path], typer.Option(metavar="FILE.tsv", help="source, tab, reference; may be repeated")]
Join = Annotated[int, typer.Option(help="lines of a file that make one text")]


@dataclass
class Told:
    """One text that grows word by word; `read` has for each committed word how many source words were known."""

    words: list[str]
    reference: str
    live: GrowingText
    text: str = ""
    read: list[int] = field(default_factory=list)

    def lags(self) -> tuple[float, float]:
        """Return average lagging and length-adaptive average lagging in words."""
        longest = max(len(self.reference.split()), len(self.read))
        return tuple(self._lag(length) for length in (len(self.reference.split()), longest))  # type: ignore[return-value]

    def _lag(self, target_length: int) -> float:
        rate = target_length / len(self.words)
        lags = [known - index / rate for index, known in enumerate(self.read)]
        complete = next((index for index, known in enumerate(self.read) if known >= len(self.words)), len(lags) - 1)
        return float(np.mean(lags[: complete + 1]))


class _Model:
    """One model that decodes on this thread."""

    def __init__(self, folder: Path, beam_size: int) -> None:
        bundle = load_bundle(folder)
        self.engine = SteppedEngine.open(bundle, max_rows=128, max_encoder_tokens=2048)
        languages = bundle.config.source_languages[0], bundle.config.target_languages[0]
        self.live = LiveModel(Pipeline(self.engine, TranslationLimits()), *languages, beam_size)
        self.num_decoded = 0

    async def decode(self, requests: Sequence[Request]) -> list[Completion]:
        call = asyncio.ensure_future(self.engine.generate(requests))
        await asyncio.sleep(0)
        while self.engine.has_work:
            self.engine.step()
        completions = await call
        self.num_decoded += sum(
            len(each.hypotheses[0].token_ids) + 1 - len(request.params.target_prefix)
            for each, request in zip(completions, requests, strict=True)
        )
        return completions

    async def whole(self, texts: Sequence[str], beam_size: int) -> list[str]:
        """Translate texts by whole sentences."""
        tokenizer, live = self.live.tokenizer, self.live
        of_texts = [[each.text for each in sentences(text, live.source)] for text in texts]
        params = SentenceParams(beam_size=beam_size)
        sources = [tokenizer.encode(each, live.target, live.source) for text in of_texts for each in text]
        completions = iter(await self.decode([Request(source, params, Timings(0.0)) for source in sources]))
        return [
            " ".join(tokenizer.decode(next(completions).hypotheses[0].token_ids) for _ in text) for text in of_texts
        ]

    async def tell(self, pairs: Sequence[Sequence[str]], policy: str, frame: int) -> list[Told]:
        """Tell all texts word by word, at the same time."""
        live = self.live
        told = [
            Told(source.split(), reference, GrowingText(live.source, live.target, policy_of(policy, frame)))
            for source, reference in pairs
        ]
        for number in range(1, max(len(each.words) for each in told) + 1):
            speaking = [each for each in told if number <= len(each.words)]
            for each in speaking:
                each.live.append(each.words[number - 1] + " ")
                if number == len(each.words):
                    each.live.finish()
            waiting = [(each, each.live.sentences(live)) for each in speaking]
            asked = [sentence for _, of_text in waiting for sentence in of_text if sentence.reading.has_words]
            completions = iter(await self.decode([live.request(each) for each in asked]))
            for each, of_text in waiting:
                decoded = [
                    live.decoded(one.reading, next(completions)) if one.reading.has_words else None for one in of_text
                ]
                update = each.live.take(list(zip(of_text, decoded, strict=True)), each.live.text)
                each.text += "".join(piece.text for piece in update.pieces)
                each.read += [number] * (len(each.text.split()) - len(each.read))
        return told


@app.command()
def quality(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE")],
    data: Data,
    join: Join = 1,
    limit: Annotated[int, typer.Option(help="texts of each file")] = 300,
    beam_size: Annotated[int, typer.Option(help="beams of live translation")] = 1,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png", help="file for a plot")] = None,
) -> None:
    """Print BLEU, lags and decoded tokens of each policy."""
    asyncio.run(_quality(bundle, data, join, limit, beam_size, plot))


async def _quality(
    folder: Path, data: Sequence[Path], join: int, limit: int, beam_size: int, plot: Path | None
) -> None:
    model, bleu = _Model(folder, beam_size), BLEU()
    print("| data | texts | policy | frame | BLEU | of whole sentences | AL | LAAL | decoded per committed token |")
    print("|---|---|---|---|---|---|---|---|---|")
    panels: dict[str, tuple[dict[str, list[tuple[float, float]]], float]] = {}
    for file in data:
        pairs = _texts(file, join, limit)
        references = [[reference for _, reference in pairs]]
        best = bleu.corpus_score(await model.whole([source for source, _ in pairs], 4), references).score
        curves: dict[str, list[tuple[float, float]]] = {}
        for policy, frames in _FRAMES.items():
            for frame in frames:
                model.num_decoded = 0
                told = await model.tell(pairs, policy, frame)
                score = bleu.corpus_score([each.text for each in told], references).score
                lag, adaptive = np.mean([each.lags() for each in told if each.read], axis=0)
                num_tokens = sum(len(model.live.tokenizer.encode_target(each.text)) for each in told)
                curves.setdefault(policy, []).append((float(adaptive), score))
                print(
                    f"| {file.name} | {len(pairs)} | {policy} | {frame} | {score:.1f} | {best:.1f} "
                    f"({score / best - 1:+.0%}) | {lag:.1f} | {adaptive:.1f} | {model.num_decoded / num_tokens:.1f} |",
                    flush=True,
                )
        panels[file.name.partition(".")[0]] = curves, best
    if plot is not None:
        _draw(panels, plot)


def _texts(file: Path, join: int, limit: int) -> list[tuple[str, str]]:
    """Return sources and references, of several lines each."""
    lines = [line.split("\t")[:2] for line in read_lines(file, limit * join)]
    groups = [lines[start : start + join] for start in range(0, len(lines), join)]
    return [(" ".join(source for source, _ in group), " ".join(target for _, target in group)) for group in groups]


def _draw(panels: dict[str, tuple[dict[str, list[tuple[float, float]]], float]], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure((5 * len(panels), 4), layout="constrained")
    for axes, (name, (curves, best)) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        axes.axhline(best, color="0.5", linestyle="--", label="whole sentences, beam 4")
        for policy, points in curves.items():
            axes.plot(*zip(*points, strict=True), marker="o", label=_TITLES[policy])
        axes.set(title=name, xlabel="length-adaptive average lagging (words)", ylabel="BLEU")
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(file, dpi=110)


@app.command()
def delay(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE")],
    data: Data,
    speakers: Annotated[int, typer.Option(help="sessions")] = 20,
    seconds: Annotated[float, typer.Option(help="of speech")] = 30.0,
    join: Join = 1,
) -> None:
    """Print percentiles of the delay of words and of ordinary requests, in milliseconds of processor time."""
    texts = [source for file in data for source, _ in _texts(file, join, 1000)]
    print("| speakers | what | number | p50 | p99 | processor busy |\n|---|---|---|---|---|---|")
    for num_speakers in (0, speakers):
        run = _Speaking(_Model(bundle, 1), texts, num_speakers, seconds)
        asyncio.run(run.run())
        for name, values in {"words": run.words, "requests": run.requests}.items():
            if values:
                p50, p99 = np.percentile(values, [50, 99]) * 1000
                busy = run.busy_seconds / seconds
                print(f"| {num_speakers} | {name} | {len(values)} | {p50:.0f} | {p99:.0f} | {busy:.0%} |", flush=True)


class _Speaking:
    """Speakers and ordinary requests on one thread, with a clock that counts its processor time and skips waiting."""

    def __init__(self, model: _Model, texts: Sequence[str], num_speakers: int, seconds: float) -> None:
        self.words: list[float] = []
        self.requests: list[float] = []
        self._model, self._texts = model, texts
        self._skipped, self._begun = 0.0, time.process_time()
        self._seconds = seconds
        options = LiveOptions(model.live.source, model.live.target)
        self._sessions = [LiveSession(options, self._find, self.clock) for _ in range(num_speakers)]
        self._calls: set[asyncio.Task[None]] = set()
        self._num_unread = 0  # words whose update was not read yet

    @property
    def busy_seconds(self) -> float:
        """Processor time so far."""
        return time.process_time() - self._begun

    def clock(self) -> float:
        """Return the seconds since the start, on a machine that runs nothing else."""
        return self.busy_seconds + self._skipped

    async def run(self) -> None:
        """Speak and ask until the time is over and all is answered."""
        arrivals = sorted([*self._speech(), *self._questions()], key=lambda each: each[0])
        tasks = [asyncio.create_task(each.run()) for each in self._sessions]
        tasks += [asyncio.create_task(self._listen(*each)) for each in zip(self._sessions, self._sent, strict=True)]
        engine = self._model.engine
        while arrivals or self._calls or self._num_unread:
            while arrivals and arrivals[0][0] <= self.clock():
                arrivals.pop(0)[1]()
            await asyncio.sleep(0)
            if engine.has_work:
                engine.step()
            elif arrivals and not self._calls and not self._num_unread:
                self._skipped += max(arrivals[0][0] - self.clock(), 0.0)
        for session in self._sessions:
            session.end("final")
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            if engine.has_work:
                engine.step()

    def _speech(self) -> Iterator[tuple[float, Callable[[], None]]]:
        self._sent: list[list[tuple[int, float]]] = []  # of each session: characters so far, and when
        for number, session in enumerate(self._sessions):
            sent: list[tuple[int, float]] = []
            self._sent.append(sent)
            words = " ".join(self._texts[number :: len(self._sessions)]).split()
            for index, word in enumerate(words[: int(self._seconds * _WORDS_PER_SECOND)]):
                at = (index + number / len(self._sessions)) / _WORDS_PER_SECOND
                yield at, partial(self._say, session, word, at, sent)

    def _say(self, session: LiveSession, word: str, at: float, sent: list[tuple[int, float]]) -> None:
        self._num_unread += 1
        sent.append(((sent[-1][0] if sent else 0) + len(word) + 1, at))
        session.send(Input(f"{word} "))

    async def _listen(self, session: LiveSession, sent: Sequence[tuple[int, float]]) -> None:
        position = 0
        async for _, event in session.events():
            while position < len(sent) and sent[position][0] <= int(str(event.get("read", 0))):
                self.words.append(self.clock() - sent[position][1])
                self._num_unread -= 1
                position += 1

    def _questions(self) -> Iterator[tuple[float, Callable[[], None]]]:
        for index, text in zip(range(int(self._seconds / _PAUSE_SECONDS)), cycle(self._texts), strict=False):
            yield index * _PAUSE_SECONDS, partial(self._ask, text, index * _PAUSE_SECONDS)

    def _ask(self, text: str, at: float) -> None:
        async def answer() -> None:
            live = self._model.live
            await live.pipeline.translate(TranslationRequest((text,), live.source, live.target))
            self.requests.append(self.clock() - at)

        self._calls.add(task := asyncio.create_task(answer()))
        task.add_done_callback(self._calls.discard)

    @contextmanager
    def _find(self) -> Iterator[Pipeline]:
        yield self._model.live.pipeline


if __name__ == "__main__":
    app()
