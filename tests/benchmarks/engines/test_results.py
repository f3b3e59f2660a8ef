import pytest

from benchmarks.engines.report import render
from benchmarks.engines.results import Comparison, Measurement, WorkloadResult, ratio
from benchmarks.machine import describe_machine


def _measurement(engine: str, seconds: list[float], output_tokens: int) -> Measurement:
    return Measurement(
        engine=engine,
        setting="2x1, 64 rows",
        versions={"onnxruntime": "1.31.1"},
        seconds=seconds,
        output_tokens=output_tokens,
        peak_bytes=250_000_000,
        bleu=21.04,
        chrf=39.2,
    )


@pytest.fixture
def comparison() -> Comparison:
    measurements = [
        _measurement("Kvasir int8", [1.0, 2.0, 1.0], 1000),
        _measurement("CTranslate2 int8", [2.0, 5.0, 1.0], 1100),
        Measurement(engine="Marian float32", not_run="No module named 'pymarian' (exit code 1)"),
    ]
    result = WorkloadResult(workload="dev, greedy", num_sentences=40, measurements=measurements)
    return Comparison(machine=describe_machine(), options={"repetitions": "3"}, workloads=[result])


def test_a_ratio_is_the_median_of_pairs_and_not_the_pair_of_medians() -> None:
    ours = _measurement("ours", [1.0, 2.0, 1.0], 1000)  # 1000, 500 and 1000 tokens per second
    theirs = _measurement("theirs", [2.0, 5.0, 1.0], 1100)  # 550, 220 and 1100
    times = ratio(ours, theirs)
    assert times.median == pytest.approx(1000 / 550)
    assert times.least == pytest.approx(1000 / 1100)
    assert times.most == pytest.approx(500 / 220)


def test_the_report_has_ratios_first_and_every_engine_with_its_quality(comparison: Comparison) -> None:
    text = render(comparison)
    assert "| dev, greedy | 1.82 (0.91-2.27) | not run |" in text
    assert "| Kvasir int8 | 2x1, 64 rows | 1000 | 500 - 1000 | 3 | 40.0 | 21.0 | 39.2 | 250 | 0.0 | 0% |" in text
    assert text.index("1.82") < text.index("64 rows")
    assert "- Kvasir: onnxruntime 1.31.1" in text


def test_a_ratio_taken_beside_a_busy_neighbour_is_marked(comparison: Comparison) -> None:
    comparison.workloads[0].measurements[1].disturbance = [0.0, 0.4, 0.0]
    text = render(comparison)
    assert "| dev, greedy | 1.82 (0.91-2.27) (!) | not run |" in text
    assert "| 40% |" in text
