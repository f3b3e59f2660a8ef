"""Times of the phases of a document job, which follow each other without gaps."""

from collections.abc import Callable

from server.documents.fragment import DocumentCounts, Fragment
from server.documents.rewriting import RewriteSteps
from server.documents.steps import DocumentSize


class PhaseClock:
    """Seconds spent in each phase until now. A phase may be entered several times."""

    def __init__(self, clock: Callable[[], float], phase: str) -> None:
        self._clock = clock
        self._phase = phase
        self._since = clock()
        self._seconds: dict[str, float] = {}

    def enter(self, phase: str) -> None:
        """End the present phase and begin another one."""
        now = self._clock()
        self._seconds[self._phase] = self._seconds.get(self._phase, 0.0) + now - self._since
        self._phase, self._since = phase, now

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each phase, the present one included, in the order of their beginnings."""
        self.enter(self._phase)
        return dict(self._seconds)


class TimedSteps:
    """Steps of a document whose reading and writing are phases; the time between steps is that of translation."""

    def __init__(self, steps: RewriteSteps, phases: PhaseClock) -> None:
        self._steps = steps
        self._phases = phases

    @property
    def counts(self) -> DocumentCounts:
        """Counts of the document so far."""
        return self._steps.counts

    async def measure(self) -> DocumentSize:
        """Read the whole document and return its size."""
        self._phases.enter("read")
        return await self._steps.measure()

    async def advance(self, translations: list[Fragment] | None) -> list[Fragment] | None:
        """Take translations of the last fragments, and return the next fragments, or None at the end."""
        self._phases.enter("write")
        fragments = await self._steps.advance(translations)
        self._phases.enter("translate")
        return fragments
