import sys
from pathlib import Path

import pytest

from benchmarks.engines.results import ratio_of
from benchmarks.paths import ROOT
from benchmarks.workers.process import Worker, WorkerFailed
from benchmarks.workloads import text_workload
from bundle.loading import Bundle, load_bundle
from server.text.tokenizers.registry import open_tokenizer

BUNDLE = ROOT / "models" / "en-de"
SENTENCES = "Good morning.\tGuten Morgen.\nWhere is Anna?\tWo ist Anna?\n"


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return load_bundle(BUNDLE)


def test_a_worker_decodes_several_jobs(bundle: Bundle, tmp_path: Path) -> None:
    tokenizer = open_tokenizer(bundle)
    file = tmp_path / "dev.en-de.tsv"
    file.write_text(SENTENCES, "utf-8")
    workload = text_workload("en-de", tokenizer, file, None, "greedy", 256, "de")
    command = [sys.executable, "-m", "benchmarks.workers.kvasir_worker", str(BUNDLE)]
    with Worker(command, tmp_path / "worker.log", timeout_seconds=60) as worker:
        assert worker.versions.keys() >= {"kvasir-server", "onnxruntime", "python"}
        first = worker.run(workload.job(return_outputs=True))
        again = worker.run(workload.job())
    assert first.outputs is not None
    assert tokenizer.decode(first.outputs[0]) == "Guten Morgen."
    assert again.outputs is None
    assert again.output_tokens == first.output_tokens == sum(map(len, first.outputs))
    assert again.peak_bytes >= first.peak_bytes > 10_000_000
    assert ratio_of([first.seconds], [first.seconds]).median == 1.0


def test_a_worker_that_cannot_start_reports_the_reason(tmp_path: Path) -> None:
    with pytest.raises(WorkerFailed, match=r"No module named .*no_such_worker.*\(exit code 1\)"):
        Worker([sys.executable, "-m", "benchmarks.workers.no_such_worker"], tmp_path / "worker.log")


def test_sentences_longer_than_the_model_are_cut_before_their_end(bundle: Bundle, tmp_path: Path) -> None:
    file = tmp_path / "long.tsv"
    file.write_text("dog " * 50 + "\tHund\n", "utf-8")
    workload = text_workload("en-de", open_tokenizer(bundle), file, None, "contract", 20, "de")
    (source,) = workload.sources
    assert len(source) == 20
    assert source[-1] == bundle.config.special_tokens.end_of_sequence
    assert workload.sentences_at_once == 32
    assert workload.length_penalty == 0.0
