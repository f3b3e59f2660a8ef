"""Observation of the ONNX Runtime sessions that the server opens, without changes to the server."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import onnxruntime as ort

from bundle.tensors import SOURCE_TOKENS

# Their time belongs to the operators inside, which have their own entries.
CONTROL_FLOW = ("If", "Loop", "Scan")


@dataclass(slots=True)
class Observed:
    """Runs of one graph. `session` is ONNX Runtime's."""

    session: object
    is_encoder: bool
    num_runs: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Observation:
    """All sessions so far, by identity."""

    sessions: dict[int, Observed] = field(default_factory=dict)

    def clear(self) -> None:
        """Reset the counts after a warm-up."""
        for observed in self.sessions.values():
            observed.num_runs, observed.seconds = 0, 0.0

    def seconds(self, *, is_encoder: bool) -> float:
        """Return the seconds inside runs of this graph."""
        return sum(observed.seconds for observed in self.sessions.values() if observed.is_encoder == is_encoder)

    def num_runs(self, *, is_encoder: bool) -> int:
        """Return the number of runs of this graph."""
        return sum(observed.num_runs for observed in self.sessions.values() if observed.is_encoder == is_encoder)

    def operator_seconds(self, *, is_encoder: bool) -> Counter[str]:
        """Return seconds by operator, and end the profile. Only for `observed_sessions(profile=...)`."""
        seconds: Counter[str] = Counter()
        for observed in self.sessions.values():
            if observed.is_encoder == is_encoder:
                profile = Path(observed.session.end_profiling())  # type: ignore[attr-defined]  # no types there
                for event in json.loads(profile.read_text("utf-8")):
                    if event.get("cat") != "Node" or not event["name"].endswith("_kernel_time"):
                        continue
                    if (operator := event["args"]["op_name"]) not in CONTROL_FLOW:
                        seconds[operator] += event["dur"] / 1e6
        return seconds


@contextmanager
def observed_sessions(profile: Path | None = None) -> Iterator[Observation]:
    """Time every run of every session inside the block; `profile` is a folder for ONNX Runtime's own profiles.

    Profiling slows down small operators, so take times and profiles in separate runs.
    """
    observation = Observation()
    make_options = ort.SessionOptions

    def profiled_options() -> object:
        options = make_options()
        if profile is not None:
            options.enable_profiling = True
            options.profile_file_prefix = str(profile / "profile")
        return options

    run, run_with_iobinding = ort.InferenceSession.run, ort.InferenceSession.run_with_iobinding

    def observe(session: object) -> Observed:
        if id(session) not in observation.sessions:
            is_encoder = session.get_inputs()[0].name == SOURCE_TOKENS  # type: ignore[attr-defined]  # no types there
            observation.sessions[id(session)] = Observed(session, is_encoder)
        return observation.sessions[id(session)]

    def timed_run(session: object, output_names: object, feed: object, run_options: object = None) -> object:
        observed = observe(session)
        start = time.thread_time()
        outputs = run(session, output_names, feed, run_options)
        observed.seconds += time.thread_time() - start
        observed.num_runs += 1
        return outputs

    def timed_run_with_iobinding(session: object, binding: object, run_options: object = None) -> None:
        observed = observe(session)
        start = time.thread_time()
        run_with_iobinding(session, binding, run_options)
        observed.seconds += time.thread_time() - start
        observed.num_runs += 1

    with (
        patch.object(ort, "SessionOptions", profiled_options),
        patch.object(ort.InferenceSession, "run", timed_run),
        patch.object(ort.InferenceSession, "run_with_iobinding", timed_run_with_iobinding),
    ):
        yield observation
