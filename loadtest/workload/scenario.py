"""What a load test does, as data: kinds of request, and stages in which they are sent. Read from TOML.

The files of `scenarios/` are the named ones; any other file of the same form is a scenario too.
"""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from loadtest.workload.texts.lengths import length_names

FOLDER = Path(__file__).parent / "scenarios"

ProtocolName = Literal["native", "stream", "libretranslate", "deepl"]

_SHARE_OF_KNEE = re.compile(r"(\d+(?:\.\d+)?) knee")
_DEEPL_BEAM_SIZES = (1, 4)  # latency_optimized and quality_optimized; that protocol has no number


class ScenarioInvalid(ValueError):
    """A scenario that does not exist, cannot be read, or contradicts itself."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Objective(_Part):
    """What counts as answered in time: `milliseconds` for each begun `max_source_tokens` of the source text.

    A rate is sustained where at least `share` of its requests are.
    """

    milliseconds: float = Field(default=400.0, gt=0)
    max_source_tokens: int = Field(default=64, ge=1)
    share: float = Field(default=0.99, gt=0, le=1)


class Workload(_Part):
    """What the texts are like. `lengths` names a distribution of sentence lengths, see `texts/lengths.toml`."""

    lengths: str = "tatoeba"
    repeats: float = Field(
        default=0.0, ge=0, lt=1, description="share of requests that repeat an earlier one of their stage"
    )
    source: str = "en"
    target: str = "de"
    corpus: str | None = Field(
        default=None, description="a file of sentences, one a line, sent instead of composed ones"
    )
    corpus_sha256: str | None = Field(default=None, description="of its lines; a corpus of others is refused")


class Kind(_Part):
    """One kind of client: what it sends, and how often beside the others."""

    name: str = Field(min_length=1)
    weight: float = Field(default=1.0, gt=0)
    protocol: ProtocolName = "native"
    text: Literal["sentence", "paragraph", "list"] = "sentence"
    beam_size: int | None = Field(default=None, ge=1, description="None: the server's default")
    list_texts: tuple[int, int] = Field(default=(2, 8), description="least and most texts of a list")
    paragraph_sentences: tuple[int, int] = Field(default=(3, 8), description="least and most sentences of a paragraph")
    hang_up_after: tuple[float, float] | None = Field(default=None, description="seconds; drawn evenly between the two")
    lengths: str | None = Field(default=None, description="instead of the workload's")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, least in (("list_texts", 2), ("paragraph_sentences", 1), ("hang_up_after", 0)):
            span = getattr(self, name)
            if span is not None and not least <= span[0] <= span[1]:
                raise ValueError(f"{name} is {list(span)}; it is [lowest, highest], and the lowest is at least {least}")
        if self.beam_size is not None and self.protocol == "libretranslate":
            raise ValueError("beam_size cannot be said in the libretranslate protocol")
        if self.beam_size not in (None, *_DEEPL_BEAM_SIZES) and self.protocol == "deepl":
            raise ValueError("beam_size in the deepl protocol is 1 (latency_optimized) or 4 (quality_optimized)")
        return self


Rate = Annotated[float, Field(gt=0)] | Annotated[str, Field(pattern=f"^{_SHARE_OF_KNEE.pattern}$")]


class Stage(_Part):
    """A time of one kind of load: arrivals at a `rate` (requests a second; or "0.5 knee"), or `users` in closed loops.

    `seconds` is the time in which requests are sent, the `warm_up_seconds` at its start included. With `ramp_to` the
    rate changes evenly from `rate` to that. `kinds` are the names of those that are sent; none means all.
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
        """True where users wait for an answer before they send the next request."""
        return self.users is not None

    @property
    def needs_knee(self) -> bool:
        """True where a rate is a share of the knee."""
        return isinstance(self.rate, str) or isinstance(self.ramp_to, str)

    def rates(self) -> tuple[float, float]:
        """Requests a second at the start and at the end.

        Raises `ScenarioInvalid` for closed loops, and while a rate is a share of the knee.
        """
        if self.rate is None:
            raise ScenarioInvalid(f"stage {self.name} is a closed loop of {self.users} users; it has no rate")
        end = self.rate if self.ramp_to is None else self.ramp_to
        if isinstance(self.rate, str) or isinstance(end, str):
            raise ScenarioInvalid(f'stage {self.name} runs at "{self.rate}" and the knee is not known: pass --knee')
        return self.rate, end

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.rate is None) == (self.users is None):
            raise ValueError("a stage has either a rate or users")
        if self.users is not None and (self.ramp_to is not None or self.arrivals != "poisson"):
            raise ValueError("ramp_to and arrivals belong to a rate, not to users")
        if self.warm_up_seconds >= self.seconds:
            raise ValueError(f"warm_up_seconds is {self.warm_up_seconds:g} of {self.seconds:g}; nothing would be left")
        return self


class Search(_Part):
    """How the knee is found: rates from `start_rate` on, each `factor` times the last, until one misses the objective.

    Where the first misses it already, rates go down by the same factor. Then come `bisections` rates between the
    highest that met it and the lowest that missed it.
    """

    start_rate: float = Field(default=8.0, gt=0)
    factor: float = Field(default=2.0, gt=1)
    seconds: float = Field(default=20.0, gt=0)
    warm_up_seconds: float = Field(default=4.0, ge=0)
    bisections: int = Field(default=4, ge=0, le=20)
    max_rate: float = Field(default=10_000.0, gt=0)
    kinds: tuple[str, ...] = ()

    def stage(self, name: str, rate: float) -> Stage:
        """One step of the search."""
        return Stage(name=name, seconds=self.seconds, warm_up_seconds=self.warm_up_seconds, rate=rate, kinds=self.kinds)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.warm_up_seconds >= self.seconds:
            raise ValueError(f"warm_up_seconds is {self.warm_up_seconds:g} of {self.seconds:g}; nothing would be left")
        return self


class Scenario(_Part):
    """A whole load test."""

    name: str = Field(min_length=1)
    description: str
    objective: Objective = Objective()
    workload: Workload = Workload()
    kinds: tuple[Kind, ...] = Field(min_length=1)
    search: Search | None = None
    stages: tuple[Stage, ...] = ()

    @property
    def needs_knee(self) -> bool:
        """True while the rate of a stage is a share of the knee."""
        return any(stage.needs_knee for stage in self.stages)

    @property
    def needs_search(self) -> bool:
        """True while the rate of a stage is a share of the knee, or the knee is all that is asked for."""
        return self.search is not None and (self.needs_knee or not self.stages)

    def kinds_of(self, stage_name: str) -> tuple[Kind, ...]:
        """The kinds of request of a stage; a name that is no stage's is a step of the search."""
        names = next((stage.kinds for stage in self.stages if stage.name == stage_name), None)
        if names is None:
            names = self.search.kinds if self.search else ()
        return tuple(kind for kind in self.kinds if not names or kind.name in names)

    def with_rates(self, knee: float) -> "Scenario":
        """The same with numbers for the rates that are shares of the knee (requests a second)."""

        def number(rate: float | str | None) -> float | None:
            if not isinstance(rate, str):
                return rate
            share = _SHARE_OF_KNEE.fullmatch(rate)
            assert share
            return float(share[1]) * knee

        if knee <= 0:
            raise ScenarioInvalid(f"the knee is {knee:g} requests a second; it must be more than none")
        changed = [
            _changed(stage, rate=number(stage.rate), ramp_to=number(stage.ramp_to)) if stage.needs_knee else stage
            for stage in self.stages
        ]
        return _changed(self, stages=tuple(changed))

    def with_overrides(
        self, rate: float | None = None, seconds: float | None = None, corpus: str | Path | None = None
    ) -> "Scenario":
        """The same with what the command line says instead.

        `rate` is for scenarios that have one rate; with several it is a `ScenarioInvalid`. `seconds` are those of each
        stage, and of each step of a search; a warm-up keeps its share of them.
        """
        stages, search, workload = self.stages, self.search, self.workload
        if rate is not None:
            if len({(stage.rate, stage.ramp_to) for stage in stages if not stage.is_closed}) != 1:
                raise ScenarioInvalid(f"scenario {self.name} has several rates or none: scale them with --knee")
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
            raise ValueError("a scenario has stages, or a search, or both")
        for what, names in (("kinds", [kind.name for kind in self.kinds]), ("stages", [s.name for s in self.stages])):
            if doubled := sorted({name for name in names if names.count(name) > 1}):
                raise ValueError(f"two {what} are called {', '.join(doubled)}")
        for lengths in (self.workload.lengths, *(kind.lengths for kind in self.kinds)):
            if lengths is not None and lengths not in length_names():
                raise ValueError(f"no lengths are called {lengths}; there are {', '.join(length_names())}")
        known = {kind.name for kind in self.kinds}
        for chosen in (*(stage.kinds for stage in self.stages), self.search.kinds if self.search else ()):
            if unknown := sorted(set(chosen) - known):
                raise ValueError(f"no kind is called {', '.join(unknown)}; there are {', '.join(sorted(known))}")
        return self


_AnyPart = TypeVar("_AnyPart", bound=_Part)
_AnyTimed = TypeVar("_AnyTimed", Stage, Search)


def _changed(part: _AnyPart, **fields: object) -> _AnyPart:
    """A copy with other values, checked again."""
    return type(part).model_validate(part.model_dump() | fields)


def _lasting(part: _AnyTimed, seconds: float) -> _AnyTimed:
    return _changed(part, seconds=seconds, warm_up_seconds=part.warm_up_seconds * seconds / part.seconds)


def scenario_names() -> list[str]:
    """The names that `load_scenario` knows."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_scenario(name_or_path: str | Path) -> Scenario:
    """A named scenario, or one of a file. Raises `ScenarioInvalid`, with every mistake by its place."""
    path = Path(name_or_path)
    if str(name_or_path) in scenario_names():
        path = FOLDER / f"{name_or_path}.toml"
    elif path.suffix != ".toml":
        raise ScenarioInvalid(f"no scenario {name_or_path}; there are {', '.join(scenario_names())}, or a .toml file")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        return Scenario.model_validate(content)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ScenarioInvalid(f"{path}: {error}") from error
    except ValidationError as error:
        raise ScenarioInvalid(f"{path}: {_mistakes(error)}") from error


def _mistakes(error: ValidationError) -> str:
    return "; ".join(
        ": ".join(filter(None, [".".join(str(place) for place in mistake["loc"]), mistake["msg"]]))
        for mistake in error.errors()
    )
