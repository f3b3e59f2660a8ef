import math
from pathlib import Path

import pytest

from server.operations.cpu_count import cpu_limit, usable_cpus


def _limit(folder: Path, membership: str, **limits: str) -> float:
    (folder / "cgroup").write_text(membership)
    for group, limit in limits.items():
        place = folder / "groups" / group.replace("_", "/")
        place.mkdir(parents=True, exist_ok=True)
        (place / "cpu.max").write_text(limit)
    return cpu_limit(folder / "cgroup", folder / "groups")


@pytest.mark.parametrize(
    ("limit", "processors"),
    [("200000 100000\n", 2.0), ("50000 100000\n", 0.5), ("max 100000\n", math.inf), ("nonsense\n", math.inf)],
)
def test_a_container_is_limited_by_the_time_it_is_given(tmp_path: Path, limit: str, processors: float) -> None:
    (tmp_path / "groups").mkdir()
    (tmp_path / "groups" / "cpu.max").write_text(limit)
    assert _limit(tmp_path, "0::/\n") == processors


def test_the_least_of_all_groups_around_a_process_counts(tmp_path: Path) -> None:
    found = _limit(
        tmp_path, "1:cpu:/\n0::/pods/one\n", pods="300000 100000", pods_one="max 100000", elsewhere="100000 100000"
    )
    assert found == 3.0


def test_a_group_that_is_not_to_be_seen_here_counts_as_the_root(tmp_path: Path) -> None:
    (tmp_path / "groups").mkdir()
    (tmp_path / "groups" / "cpu.max").write_text("150000 100000")
    assert _limit(tmp_path, "0::/../docker/1234\n") == 1.5


def test_without_control_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert cpu_limit(tmp_path / "none", tmp_path) == math.inf
    assert _limit(tmp_path, "4:cpu:/a\n") == math.inf


@pytest.mark.parametrize(("limit", "expected"), [(0.5, 1), (1.9, 1), (math.inf, None)])
def test_whole_processors_are_used_and_at_least_one(
    monkeypatch: pytest.MonkeyPatch, limit: float, expected: int | None
) -> None:
    monkeypatch.setattr("server.operations.cpu_count.os.sched_getaffinity", lambda _: set(range(64)))
    monkeypatch.setattr("server.operations.cpu_count.os.cpu_count", lambda: 64)
    monkeypatch.setattr("server.operations.cpu_count.cpu_limit", lambda: limit)
    assert usable_cpus() == (expected or 64)
