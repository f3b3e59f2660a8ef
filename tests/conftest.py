"""Rules for every test: no network, one thread a library, nothing fetched from a hub."""

import gc
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from functools import cache

import pytest

# Read when torch, numpy and the tokenizers are imported, so they are set before any test module is.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from tests.loopback_only import block_the_network


def pytest_configure() -> None:
    """Closes the network before the first test module is imported."""
    block_the_network()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare the garbage collector the objects of modules, which all stay: a third of the imports is its work."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        if "export.graphs.tracing" in sys.modules:
            _build_the_table_of_operators_once()
        # pytest adds its handlers to each logger that does not propagate. With any, PyTorch records every step of an
        # export with its stack, and a test that fails shows thousands of them.
        logging.getLogger("torch.__trace").propagate = True


def _build_the_table_of_operators_once() -> None:
    """Keep PyTorch's table of ONNX operators, which takes two seconds to build; PyTorch makes one for each graph."""
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    ONNXRegistry.from_torchlib = staticmethod(cache(ONNXRegistry.from_torchlib))  # type: ignore[method-assign]


def pytest_sessionfinish() -> None:
    """Undo it: Hypothesis, which its plugin may import only now, looks among all objects."""
    gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def _temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give temporary files a folder of their own, of processes that tests start as well; no document may be left."""
    from server.documents.input.uploads import remove_abandoned_folders

    folder = tmp_path_factory.mktemp("t", numbered=False)
    before = tempfile.tempdir
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    yield
    tempfile.tempdir = before
    remove_abandoned_folders(folder)  # of servers that a test has killed
    left = [path.name for path in folder.glob("kvasir-documents-*")]
    assert not left, f"temporary files of documents are left: {left}"


@pytest.fixture(autouse=True)
def _no_network() -> None:
    """Apply them to a test that runs without `pytest_configure`, such as one in a process of its own."""
    block_the_network()


@pytest.fixture(autouse=True)
def _broken_pipes_are_errors() -> None:
    """As Python has it; `kvasir translate` makes them the end of the process."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


@pytest.fixture(autouse=True)
def _settings_of_the_process() -> Iterator[None]:
    """Undo what a command that ran in this process has set; its standard error is closed after the test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    gc.enable()
