"""The default model with the native operators and with the functions that take their place."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernels.onnx_registration import running_kernels
from tests.end_to_end.servers import Served, started

SENTENCES = (
    (Path(__file__).resolve().parents[2] / "loadtest" / "workload" / "sentences.txt")
    .read_text(encoding="utf-8")
    .splitlines()
)

RUNNING = running_kernels()  # before a test switches them off


@pytest.fixture(scope="module")
def without_kernels() -> Iterator[Served]:
    """A server that leaves all work to ONNX Runtime's own operators."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("KVASIR_KERNELS", "off")
        yield from started("--cache-sentences", "0")


def _kernels(served: Served) -> object:
    return next(line["kernels"] for line in served.lines if line["message"] == "models loaded")


def _translations(served: Served, **options: object) -> list[str]:
    with served.client() as client:
        answer = client.post("/v1/translate", json={"text": SENTENCES[:24], **options})
    assert answer.status_code == 200, answer.text
    return [translation["text"] for translation in answer.json()["translations"]]


@pytest.mark.parametrize(
    "options",
    [{"beam_size": 1}, {"beam_size": 4, "return_scores": True}, {"beam_size": 4, "no_repeat_ngram_size": 2}],
    ids=lambda options: " ".join(options),
)
def test_both_translate_almost_alike(served: Served, without_kernels: Served, options: dict[str, object]) -> None:
    native, functions = _translations(served, **options), _translations(without_kernels, **options)
    # Rounded elsewhere, an int8 number may fall on the other side, and a translation with it now and then.
    assert sum(map(str.__eq__, native, functions)) >= 19


def test_the_log_says_which_operators_run(served: Served, without_kernels: Served) -> None:
    assert _kernels(served) == RUNNING
    assert _kernels(without_kernels) == "onnxruntime"
