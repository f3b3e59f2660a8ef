"""Ratios between servers, and the tables."""

from benchmarks.servers.results import (
    Comparison,
    KneeFound,
    LoadFound,
    Ratio,
    ServerFound,
    goodput_ratio,
    knee_ratio,
    render,
)
from loadtest.results.run_folder import MachineInfo


def load(number: int, rate: float, goodput: float, is_late: bool = False) -> LoadFound:
    return LoadFound(
        round=number,
        rate=rate,
        goodput=goodput,
        share_in_time=goodput / rate,
        p50_ms=50.0,
        p99_ms=120.0,
        rejected_p99_ms=4.0,
        rejected_share=1 - goodput / rate,
        target_tokens_per_second=1000.0,
        server_cores=1.5,
        generator_cores=0.1,
        is_late=is_late,
    )


def quick() -> ServerFound:
    knees = [KneeFound(1, 40.0, 39.8, 41.0), KneeFound(2, 50.0, 49.5, 50.0)]
    return ServerFound("quick", {"rows": "64"}, 60.0, knees=knees, loads=[load(1, 80, 44), load(2, 80, 20)])


def slow() -> ServerFound:
    knees = [KneeFound(1, 10.0, 9.9, 11.0), KneeFound(2, 20.0, 19.5, 20.0)]
    loads = [load(1, 10, 10), load(2, 10, 40, is_late=True)]
    return ServerFound("slow", {}, 12.0, knees=knees, loads=loads)


def test_ratios_are_taken_within_a_round() -> None:
    assert knee_ratio(quick(), slow()) == Ratio(3.25, 2.5, 4.0)
    assert goodput_ratio(quick(), slow()) == Ratio(3.25, 2.5, 4.0)


def test_a_round_in_which_the_first_server_sustained_nothing_counts_against_it() -> None:
    knees = [KneeFound(1, 40.0, 40.0, 40.0), KneeFound(2, None, 0.0, 5.0), KneeFound(3, None, 0.0, 5.0)]
    unsteady = ServerFound("unsteady", knees=knees)
    steady = ServerFound("steady", knees=[KneeFound(n, 20.0, 20.0, 20.0) for n in (1, 2, 3)])
    assert knee_ratio(unsteady, steady) == Ratio(0.0, 0.0, 2.0)
    assert knee_ratio(steady, unsteady) == Ratio(0.5, 0.5, 0.5)


def test_the_tables_contain_results_and_reasons_for_missing_ones() -> None:
    absent = ServerFound("absent", not_run="it is not there")
    machine = MachineInfo("a processor", 2, "Linux")
    tables = render(Comparison("knee", "soon", "2026-01-01", machine, {}, 1, [quick(), slow(), absent]))
    assert "| slow | 15 (10 - 20) | 3.25 (2.50 - 4.00) | 15.5 (11 - 20) | 3.25 (2.50 - 4.00) | as installed |" in tables
    assert "| absent | - | - | - | - | it is not there |" in tables
    assert "| 80/s | 32.0 (40.0%; 60%) | - | - |" in tables
    assert "| 10/s | - | 25.0 (250.0%; -150%) (!) | - |" in tables
    assert "(!): the generator was late" in tables
