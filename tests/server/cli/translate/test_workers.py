"""Worker processes of `kvasir translate`, over the default model."""

import io
import os
import signal
from multiprocessing import active_children

import pytest

from bundle.loading import Bundle
from server.cli.offline_options import OfflineOptions
from server.cli.translate.blocks import Block
from server.cli.translate.lines import translate_file
from server.cli.translate.workers import WorkerProcesses
from server.interface.decoding_options import DecodingOptions
from server.interface.errors import EngineFailed, InvalidRequest

GREEDY = DecodingOptions(beam_size=1)


def _translated(bundle: Bundle, text: bytes, threads: int, decoding: DecodingOptions = GREEDY) -> list[str]:
    sink = io.BytesIO()
    translate_file([bundle], io.BytesIO(text), sink, OfflineOptions(threads=threads, decoding=decoding))
    return sink.getvalue().decode().split("\n")


def _receive_all(workers: WorkerProcesses) -> None:
    while workers.num_missing:
        workers.receive()


def test_two_processes_give_the_answers_of_one_engine_in_the_order_of_the_lines(default_bundle: Bundle) -> None:
    sentences = ["Good morning.", "Set %d to 5 in `main.py`.", "The rain fell all night, and the river rose.", ""]
    text = "\n".join(f"{sentences[number % 4]} {number}" for number in range(400)).encode()
    assert _translated(default_bundle, text, threads=2) == _translated(default_bundle, text, threads=1)
    assert not active_children()


def test_lines_larger_than_a_pipe_block_neither_side(default_bundle: Bundle) -> None:
    lines = [("-" * (100_000 + number)).encode() for number in range(12)]  # without words: nothing is decoded
    assert _translated(default_bundle, b"\n".join(lines), threads=2)[:-1] == [line.decode() for line in lines]


def test_the_error_of_a_process_is_raised(default_bundle: Bundle) -> None:
    text = b"Where is the station?\n" * 1000
    wrong = DecodingOptions(beam_size=2, num_hypotheses=3)
    with pytest.raises(InvalidRequest, match="`num_hypotheses` must be from 1 to 2"):
        _translated(default_bundle, text, threads=2, decoding=wrong)
    assert not active_children()


def test_a_process_that_dies_ends_the_translation_with_an_error(default_bundle: Bundle) -> None:
    workers = WorkerProcesses([default_bundle], OfflineOptions(decoding=GREEDY), 2)
    try:
        workers.submit(Block(0, ["Good morning."] * 3))
        workers.submit(Block(1, ["Good evening."] * 3))
        victim = active_children()[0]
        assert victim.pid is not None
        os.kill(victim.pid, signal.SIGKILL)
        with pytest.raises(EngineFailed, match="exited with code -9"):
            _receive_all(workers)
    finally:
        workers.close()
    assert not active_children()
