import time

import pytest

from benchmarks.offline.budget import PARTS, Clocks


def test_every_part_is_a_function_that_exists() -> None:
    for part, owner, names in PARTS:
        for name in names:
            assert name in vars(owner), f"{part}: {name}"


def test_time_in_another_part_counts_for_that_one_only(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "thread_time", lambda: now[0])

    class Owner:
        def outer(self) -> str:
            now[0] += 1.0
            answer = self.inner(2.0)
            now[0] += 3.0
            return answer

        def inner(self, seconds: float) -> str:
            now[0] += seconds
            return "answer"

        @classmethod
        def of(cls) -> str:
            now[0] += 5.0
            return cls.__name__

    clocks = Clocks()
    clocks.wrap("outer", Owner, "outer")
    clocks.wrap("inner", Owner, "inner")
    clocks.wrap("inner", Owner, "of")
    now[0] = 100.0  # time outside of all parts counts for none
    assert (Owner().outer(), Owner.of()) == ("answer", "Owner")
    assert clocks.seconds == {"outer": 4.0, "inner": 7.0}
