import asyncio

import pytest

from server.operations.event_loop import watch_event_loop
from tests.fakes.event_loop import until


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose clock the test sets."""

    now = 100.0

    def time(self) -> float:
        return self.now


def test_the_lag_is_observed_several_times_a_second_and_logged_from_a_second_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lags: list[float] = []

    async def watched() -> None:
        task = asyncio.create_task(watch_event_loop(lags.append))
        for elapsed in (0.25, 1.2, 1.25):
            await asyncio.sleep(0)
            num_lags = len(lags)
            loop.now += elapsed
            await until(lambda: len(lags) > num_lags)  # noqa: B023 - awaited here
        task.cancel()

    loop = _Loop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(watched())
    assert lags == pytest.approx([0, 0.95, 1])
    [warning] = caplog.records
    assert (warning.message, vars(warning)["seconds"]) == ("event loop blocked", 1)
