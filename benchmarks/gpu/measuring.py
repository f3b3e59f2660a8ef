"""Steps and tokens per second of the device runner, on a GPU or, to test this code, on the host."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.in_process import InProcessEngine
from bundle.loading import Bundle
from server.engine.runners.device.memory import DeviceMemory
from server.engine.runners.device.runner import DeviceRunner
from server.engine.runners.device.sessions import DeviceSessions
from server.interface.decoding_options import DecodingOptions
from server.interface.request import SentenceParams, TokenIds

SOURCE_TOKENS = 20


@dataclass(frozen=True, slots=True)
class Window:
    """First and last token of the timed steps, number of repetitions, and length of a whole answer."""

    begin: int = 16
    end: int = 48
    repetitions: int = 3
    answer_tokens: int = 32


def random_sources(bundle: Bundle, number: int) -> list[TokenIds]:
    """Return random sentences of one length."""
    random = np.random.default_rng(number)
    tokens = random.integers(2, bundle.config.shapes.vocab_size - 1, (number, SOURCE_TOKENS)).astype(np.int32)
    tokens[:, -1] = bundle.config.special_tokens.end_of_sequence
    return list(tokens)


def step_milliseconds(
    sessions: DeviceSessions, rows: int, window: Window, *, captures: bool, runs_ahead: bool, num_candidates: int = 1
) -> float:
    """Return milliseconds per step with `rows` rows, without an engine: the median of `window.repetitions`.

    With several candidates scores are computed, as for beams, and no row moves.
    """
    runner = DeviceRunner(sessions, rows, max(rows * SOURCE_TOKENS, 16), captures=captures, runs_ahead=runs_ahead)
    cache = runner.cache
    encoded = runner.encode(random_sources(sessions.bundle, rows))
    taken = cache.assign(1, rows)

    def begin() -> None:
        for row, cross in zip(taken.tolist(), encoded, strict=True):
            cache.write_source(row, cross, runner.start_token)

    def steps(number: int) -> None:
        for _ in range(number):
            chosen = runner.decode(rows, num_candidates, num_candidates > 1)
            cache.previous_tokens[:rows] = chosen.tokens[:, 0]

    times = []
    for _ in range(window.repetitions + 1):  # the first one captures, and does not count
        begin()
        steps(window.begin)
        started = time.perf_counter()
        steps(window.end - window.begin)
        times.append((time.perf_counter() - started) / (window.end - window.begin) * 1e3)
    return median(times[1:])


def tokens_per_second(sessions: DeviceSessions, rows: int, beam_size: int, window: Window) -> float:
    """Return output tokens per second of the engine with twice as many sentences as rows: rows are reassigned."""
    runner = DeviceRunner(sessions, rows, max(rows * SOURCE_TOKENS, 16))
    engine = InProcessEngine.over(runner, sessions.bundle)
    sources = random_sources(sessions.bundle, max(2 * rows // beam_size, 1))
    params = SentenceParams(
        DecodingOptions(max_repetitions=0), beam_size=beam_size, max_new_tokens=window.answer_tokens
    )
    engine.decode(sources, params)
    rates = []
    for _ in range(window.repetitions):
        started = time.perf_counter()
        answers = engine.decode(sources, params)
        seconds = time.perf_counter() - started
        rates.append(sum(len(answer.hypotheses[0].token_ids) for answer in answers) / seconds)
    return median(rates)


def copy_bandwidth(on_gpu: bool) -> float:
    """Return bytes a second that a large copy within the device's memory reads and writes, both counted."""
    if not on_gpu:
        source = np.ones(1 << 24, np.uint8)
        target = np.empty_like(source)
        return 2 * source.nbytes / min(_seconds(lambda: np.copyto(target, source)) for _ in range(3))
    import torch  # a GPU machine has it, and needs it for the comparison anyway

    large = torch.ones(1 << 30, dtype=torch.uint8, device="cuda")
    other = torch.empty_like(large)

    def copy() -> None:
        for _ in range(10):
            other.copy_(large)
        torch.cuda.synchronize()

    return 10 * 2 * large.numel() / min(_seconds(copy) for _ in range(4))


def open_memory(device: str) -> DeviceMemory:
    """Return the GPU, or the host in its place."""
    from server.engine.runners.device.memory import HostMemory
    from server.engine.runners.device.sessions import open_cuda

    return open_cuda() if device == "cuda" else HostMemory()


def _seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started
