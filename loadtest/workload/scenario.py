"""Scenarios of load tests, read from TOML: kinds of request, and the stages that send them.

The files in `scenarios/` have names; any other file of this form is a scenario too.
"""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from loadtest.results.objective import Objective
from loadtest.workload.texts.lengths import length_names

FOLDER = Path(__file__).parent / "scenarios"

ProtocolName = Literal["native", "stream", "libretranslate", "deepl"]

_SHARE_OF_KNEE = re.compile(r"(\d+(?:\.\d+)?) knee")
_DEEPL_BEAM_SIZES = (1, 4)  # latency_optimized and quality_optimized; the protocol has no number


class ScenarioInvalid(ValueError):
    """A scenario that does not exist, cannot be read, or contradicts itself."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Workload(_Part):
    """Properties of the texts. `lengths` names a distribution of sentence lengths in `texts/lengths.toml`."""

    lengths: str = "tatoeba"
    repeats: float = Field(
        default=0.0, ge=0, lt=1, description="share of requests that repeat an earlier one of their stage"
    )
    source: str = "en"
    target: str = "de"
    corpus: str | None = Field(
        default=None, description="path of a file of sentences, one per line, instead of generated ones"
    )
    corpus_sha256: str | None = Field(default=None, description="sha256 of the corpus; others are rejected")


class Kind(_Part):
    """One kind of client: its requests and their relative frequency."""

    name: str = Field(min_length=1)
    weight: float = Field(default=1.0, gt=0)
    protocol: ProtocolName = "native"
    text: Literal["sentence", "paragraph", "list"] = "sentence"
    beam_size: int | None = Field(default=None, ge=1, description="beam size; None: the server's default")
    list_texts: tuple[int, int] = Field(default=(2, 8), description="minimum and maximum texts of a list")
    paragraph_sentences: tuple[int, int] = Field(
        default=(3, 8), description="minimum and maximum sentences of a paragraph"
    )
    hang_up_after: tuple[float, float] | None = Field(
        default=None, description="range of seconds until the client disconnects"
    )
    lengths: str | None = Field(default=None, description="distribution of sentence lengths, instead of the workload's")
    options: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="further fields of requests in the native protocol",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, minimum in (("list_texts", 2), ("paragraph_sentences", 1), ("hang_up_after", 0)):
            span = getattr(self, name)
            if span is not None and not minimum <= span[0] <= span[1]:
                raise ValueError(
                    f"`{name}` must be [lowest, highest], with a lowest of at least {minimum}. Given: {list(span)}"
                )
        if self.beam_size is not None and self.protocol == "libretranslate":
            raise ValueError("`beam_size` cannot be combined with the libretranslate protocol")
        if self.options and self.protocol not in ("native", "stream"):
            raise ValueError(f"`options` need the native or stream protocol. Given: {self.protocol}")
        if self.beam_size not in (None, *_DEEPL_BEAM_SIZES) and self.protocol == "deepl":
            raise ValueError("`beam_size` in the deepl protocol must be 1 (latency_optimized) or 4 (quality_optimized)")
        return self


Rate = Annotated[float, Field(gt=0)] | Annotated[str, Field(pattern=f"^{_SHARE_OF_KNEE.pattern}$")]


class Stage(_Part):
    """A period of one load: arrivals at a `rate` (requests per second, or "0.5 knee"), or `users` in closed loops.

    Requests are sent for `seconds`, including `warm_up_seconds` at the start. With `ramp_to` the rate changes linearly
    from `rate` to that. `kinds` are the names of the kinds that are sent; empty means all.
    """

    name: str = Field(min_length=1)
    seconds: float = Field(gt=0)
    warm_up_seconds: float = Field(default=0.0, ge=0)
    rate: Rate | None = None
    users: int | None = Field(default=None, ge=1)
    arrivals: Literal["poisson", "constant"] = "poisson"
    ramp_to: Rate | None = None
    kinds: tuple[str, ...] = ()

    @property
    def is_closed(self) -> bool:
        """Whether users wait for an answer before they send the next request."""
        return self.users is not None

    @property
    def needs_knee(self) -> bool:
        """Whether a rate is a share of the knee."""
        return isinstance(self.rate, str) or isinstance(self.ramp_to, str)

    def rates(self) -> tuple[float, float]:
        """Return requests per second at the start and at the end.

        Raises `ScenarioInvalid` for closed loops, and while a rate is a share of the knee.
        """
        if self.rate is None:
            raise ScenarioInvalid(f"stage {self.name} is a closed loop of {self.users} users and has no rate")
        end = self.rate if self.ramp_to is None else self.ramp_to
        if isinstance(self.rate, str) or isinstance(end, str):
            raise ScenarioInvalid(f'the knee is unknown, and stage {self.name} has the rate "{self.rate}"; pass --knee')
        return self.rate, end

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.rate is None) == (self.users is None):
            raise ValueError("a stage must have either `rate` or `users`")
        if self.users is not None and (self.ramp_to is not None or self.arrivals != "poisson"):
            raise ValueError("`ramp_to` and `arrivals` need a `rate`; they cannot be combined with `users`")
        if self.warm_up_seconds >= self.seconds:
            raise ValueError(f"`warm_up_seconds` must be less than {self.seconds:g}. Given: {self.warm_up_seconds:g}")
        return self


class Search(_Part):
    """Search for the knee: rates from `start_rate` on, each `factor` times the last, until one misses the objective.

    If the first misses it, rates fall by the same factor. Then follow `bisections` rates between the highest that met
    it and the lowest that missed it.
    """

    start_rate: float = Field(default=8.0, gt=0)
    factor: float = Field(default=2.0, gt=1)
    seconds: float = Field(default=20.0, gt=0)
    warm_up_seconds: float = Field(default=4.0, ge=0)
    bisections: int = Field(default=4, ge=0, le=20)
    max_rate: float = Field(default=10_000.0, gt=0)
    kinds: tuple[str, ...] = ()

    def stage(self, name: str, rate: float) -> Stage:
        """Return one step of the search as a stage."""
        return Stage(name=name, seconds=self.seconds, warm_up_seconds=self.warm_up_seconds, rate=rate, kinds=self.kinds)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.warm_up_seconds >= self.seconds:
            raise ValueError(f"`warm_up_seconds` must be less than {self.seconds:g}. Given: {self.warm_up_seconds:g}")
        return self


class Scenario(_Part):
    """A complete load test."""

    name: str = Field(min_length=1)
    description: str
    objective: Objective = Objective()
    workload: Workload = Workload()
    kinds: tuple[Kind, ...] = Field(min_length=1)
    search: Search | None = None
    stages: tuple[Stage, ...] = ()

    @property
    def needs_knee(self) -> bool:
        """Whether the rate of a stage is a share of the knee."""
        return any(stage.needs_knee for stage in self.stages)

    @property
    def needs_search(self) -> bool:
        """Whether a stage needs the knee, or the scenario consists of the search alone."""
        return self.search is not None and (self.needs_knee or not self.stages)

    def kinds_of(self, stage_name: str) -> tuple[Kind, ...]:
        """Return the kinds of request of a stage; an unknown name is a step of the search."""
        names = next((stage.kinds for stage in self.stages if stage.name == stage_name), None)
        if names is None:
            names = self.search.kinds if self.search else ()
        return tuple(kind for kind in self.kinds if not names or kind.name in names)

    def with_rates(self, knee: float) -> "Scenario":
        """Return a copy in which shares of the knee are requests per second."""

        def number(rate: float | str | None) -> float | None:
            if not isinstance(rate, str):
                return rate
            share = _SHARE_OF_KNEE.fullmatch(rate)
            assert share
            return float(share[1]) * knee

        if knee <= 0:
            raise ScenarioInvalid(f"`knee` must be above 0 requests per second. Given: {knee:g}")
        changed = [
            _changed(stage, rate=number(stage.rate), ramp_to=number(stage.ramp_to)) if stage.needs_knee else stage
            for stage in self.stages
        ]
        return _changed(self, stages=tuple(changed))

    def with_overrides(
        self, rate: float | None = None, seconds: float | None = None, corpus: str | Path | None = None
    ) -> "Scenario":
        """Return a copy with values of the command line.

        `rate` raises `ScenarioInvalid` unless the scenario has exactly one rate. `seconds` applies to each stage and to
        each step of a search; a warm-up keeps its share.
        """
        stages, search, workload = self.stages, self.search, self.workload
        if rate is not None:
            if len({(stage.rate, stage.ramp_to) for stage in stages if not stage.is_closed}) != 1:
                raise ScenarioInvalid(
                    f"`--rate` needs a scenario with one rate, and {self.name} has several or none; pass --knee"
                )
            stages = tuple(stage if stage.is_closed else _changed(stage, rate=rate, ramp_to=None) for stage in stages)
        if seconds is not None:
            stages = tuple(_lasting(stage, seconds) for stage in stages)
            search = search and _lasting(search, seconds)
        if corpus is not None:
            workload = _changed(workload, corpus=str(corpus), corpus_sha256=None)
        return _changed(self, stages=stages, search=search, workload=workload)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.stages and self.search is None:
            raise ValueError("a scenario must have `stages` or a `search`")
        for what, names in (("kinds", [kind.name for kind in self.kinds]), ("stages", [s.name for s in self.stages])):
            if doubled := sorted({name for name in names if names.count(name) > 1}):
                raise ValueError(f"names of {what} must be unique. Given twice: {', '.join(doubled)}")
        for lengths in (self.workload.lengths, *(kind.lengths for kind in self.kinds)):
            if lengths is not None and lengths not in length_names():
                raise ValueError(f"unknown lengths {lengths}; available: {', '.join(length_names())}")
        known = {kind.name for kind in self.kinds}
        for chosen in (*(stage.kinds for stage in self.stages), self.search.kinds if self.search else ()):
            if unknown := sorted(set(chosen) - known):
                raise ValueError(f"unknown kinds {', '.join(unknown)}; available: {', '.join(sorted(known))}")
        return self


_AnyPart = TypeVar("_AnyPart", bound=_Part)
_AnyTimed = TypeVar("_AnyTimed", Stage, Search)


def _changed(part: _AnyPart, **fields: object) -> _AnyPart:
    """Return a validated copy with other values."""
    return type(part).model_validate(part.model_dump() | fields)


def _lasting(part: _AnyTimed, seconds: float) -> _AnyTimed:
    return _changed(part, seconds=seconds, warm_up_seconds=part.warm_up_seconds * seconds / part.seconds)


def scenario_names() -> list[str]:
    """Return the names of the named scenarios."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_scenario(name_or_path: str | Path) -> Scenario:
    """Return a named scenario, or one from a file. Raises `ScenarioInvalid` with every mistake and its field."""
    path = Path(name_or_path)
    if str(name_or_path) in scenario_names():
        path = FOLDER / f"{name_or_path}.toml"
    elif path.suffix != ".toml":
        raise ScenarioInvalid(
            f"unknown scenario {name_or_path}; available: {', '.join(scenario_names())}, or a .toml file"
        )
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        return Scenario.model_validate(content)
    except OSError as error:
        raise ScenarioInvalid(f"scenario {path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ScenarioInvalid(f"{path}: {error}") from error
    except ValidationError as error:
        raise ScenarioInvalid(f"{path}: {_mistakes(error)}") from error


def _mistakes(error: ValidationError) -> str:
    return "; ".join(
        ": ".join(filter(None, [".".join(str(place) for place in mistake["loc"]), mistake["msg"]]))
        for mistake in error.errors()
    )
