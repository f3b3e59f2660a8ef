"""The CTranslate2 server as a comparison starts it, with a tiny random model."""

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import ctranslate2
import httpx2
import pytest

from benchmarks.servers.running import ServerProcess
from benchmarks.servers.server_kinds import Launch
from benchmarks.servers.texts import Tokenizer
from tests.benchmarks.servers.conftest import Weights

SENTENCES = ["the old dog sees a river.", "my cat reads under the green house.", "a cat builds.", "the dog reads"]
AT_ONCE = 24


@pytest.fixture(scope="module")
def client(weights: Weights, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """One batch at a time and two sentences in the queue, so that batches and rejections are easy to observe."""
    options = ("--inter-threads", "1", "--intra-threads", "1", "--max-waiting", "12", "--target-factor", "0")
    models = ("--checkpoint", str(weights.checkpoint), "--model", str(weights.ctranslate2), "--port", "{port}")
    command = (sys.executable, "-m", "benchmarks.servers.ctranslate2_server", *models, *options)
    log = tmp_path_factory.mktemp("logs") / "server.log"
    with (
        ServerProcess(Launch(command, "/health/ready"), log) as server,
        httpx2.Client(base_url=server.url, timeout=60) as client,
    ):
        yield client


@pytest.mark.parametrize("beam_size", [1, 4])
def test_its_answers_equal_those_of_ctranslate2(weights: Weights, client: httpx2.Client, beam_size: int) -> None:
    translator = ctranslate2.Translator(str(weights.ctranslate2), inter_threads=1, intra_threads=1, compute_type="int8")
    tokenizer = Tokenizer.of_checkpoint(weights.checkpoint)
    for sentence in SENTENCES:
        pieces = tokenizer.encode(sentence)
        [alone] = translator.translate_batch([pieces], beam_size=beam_size, max_decoding_length=tokenizer.max_tokens)
        body = {"text": sentence, "source": "en", "target": "de", "beam_size": beam_size}
        [answer] = client.post("/v1/translate", json=body).raise_for_status().json()["translations"]
        assert answer["text"] == tokenizer.decode(alone.hypotheses[0])
        assert (answer["source_tokens"], answer["target_tokens"]) == (len(pieces), len(alone.hypotheses[0]) + 1)


@pytest.mark.parametrize("option", [{"stream": True}, {"max_length_ratio": 1, "max_repetitions": 0}])
def test_an_option_that_the_engine_lacks_is_rejected(client: httpx2.Client, option: dict[str, object]) -> None:
    assert client.post("/v1/translate", json={"text": "a dog", **option}).status_code == 422


def test_requests_at_once_share_batches_and_too_many_get_429(client: httpx2.Client) -> None:
    together = threading.Barrier(AT_ONCE)

    def ask(_: int) -> httpx2.Response:
        together.wait(60)
        # A request is queued as a whole, so six of these fill the queue.
        return client.post("/v1/translate", json={"text": SENTENCES * 2, "beam_size": 4})

    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = list(threads.map(ask, range(AT_ONCE)))
    refused = [answer for answer in answers if answer.status_code == 429]
    assert {answer.status_code for answer in answers} == {200, 429}
    assert refused[0].json()["error"]["code"] == "queue_full"
    assert refused[0].headers["Retry-After"] == "1"
    counts = client.get("/batches").json()
    assert counts["largest_batch"] > len(SENTENCES) * 2 - 1
    assert counts["refused"] == len(refused)
