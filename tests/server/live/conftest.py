"""Live sessions over engines that run on the test's own thread."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest

from bundle.loading import Bundle
from server.interface.request import Completion, Request
from server.live.decoding import LiveModel, LiveSentence
from server.live.growing_text import GrowingText, Update
from server.live.session import LiveOptions, LiveSession
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.workers.stepped_engine import SteppedEngine
from tests.fakes.engine import FakeClock, FakeRunner, random_table

END_BIAS = 1.5  # sentences of some ten tokens


class Told:
    """A pipeline whose engine runs while a test waits, and a clock that the test sets."""

    def __init__(self, engine: SteppedEngine) -> None:
        self.engine = engine
        self.pipeline = Pipeline(engine, TranslationLimits())
        self.clock = FakeClock()
        config = engine.bundle.config
        self.languages = config.source_languages[0], config.target_languages[0]

    def model(self, beam_size: int = 1) -> LiveModel:
        """Return the model for texts without a session."""
        return LiveModel(self.pipeline, *self.languages, beam_size)

    def session(self, charge: Callable[[int], None] = lambda _: None, **options: object) -> LiveSession:
        """Return a session that is not running."""
        return LiveSession(LiveOptions(*self.languages, **options), self.find, self.clock, charge)  # type: ignore[arg-type]

    @contextmanager
    def find(self) -> Iterator[Pipeline]:
        """Return the pipeline, as a router does."""
        yield self.pipeline

    async def translate(self, text: GrowingText, model: LiveModel) -> Update:
        """Decode all open sentences of a text, and commit what may be."""
        then, sentences = text.text, text.sentences(model)
        requests = {each: model.request(each) for each in sentences if each.reading.has_words}
        completions = await self.decoded(requests)
        decoded = {each: model.decoded(each.reading, done) for each, done in completions.items()}
        return text.take([(each, decoded.get(each)) for each in sentences], then)

    async def decoded(self, requests: Mapping[LiveSentence, Request]) -> dict[LiveSentence, Completion]:
        """Decode requests together."""
        call = asyncio.ensure_future(self.engine.generate(list(requests.values())))
        await asyncio.sleep(0)
        while self.engine.has_work:
            self.engine.step()
        return dict(zip(requests, await call, strict=True))

    async def until_idle(self, sessions: Sequence[LiveSession]) -> None:
        """Run the engine until nothing that was sent waits."""
        while not all(each.is_idle or each.has_ended for each in sessions):
            if self.engine.has_work:
                self.engine.step()
            await asyncio.sleep(0)


@pytest.fixture(scope="module")
def random_model(echo_bundle: Bundle) -> Told:
    """A model that writes random tokens."""
    table = random_table(1, echo_bundle.config.shapes.target_vocab_size, END_BIAS)
    return Told(SteppedEngine(echo_bundle, FakeRunner(table), max_admitted_tokens=10_000))


@pytest.fixture(scope="module")
def real_engine(default_bundle: Bundle) -> SteppedEngine:
    """The engine of the model that comes along."""
    return SteppedEngine.open(default_bundle, max_rows=64, max_encoder_tokens=1024)


@pytest.fixture
def told(real_engine: SteppedEngine) -> Told:
    """The model that comes along."""
    return Told(real_engine)
