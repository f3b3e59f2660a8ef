"""Models by task, and routes between languages: one model, or two through a third language."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from bundle.loading import Bundle
from bundle.manifest import BundleConfig
from server.interface.errors import InvalidRequest, NotFound, UnsupportedPair, UnsupportedTask
from server.text.language_tags import match_language
from server.translation.pipeline import Pipeline
from server.translation.pivot import PivotPipeline, TextPipeline
from server.translation.whole_texts import Scorer

Task = Literal["translate", "generate", "embed"]

_DOES: Final[Mapping[Task, Callable[[BundleConfig], bool]]] = {
    "translate": lambda config: config.translates,
    "generate": lambda config: config.generation is not None,
    "embed": lambda config: config.embeds,
}
_ROUTES: Final[Mapping[Task, str]] = {
    "translate": "POST /v1/translate",
    "generate": "POST /v1/generate",
    "embed": "POST /v1/embed",
}


def tasks_of(config: BundleConfig) -> list[Task]:
    """Return the tasks of a model."""
    return [task for task, does in _DOES.items() if does(config)]


class TaskModels:
    """The models of a server by task. The first one for a task serves requests that name no model."""

    def __init__(self, pipelines: Sequence[Pipeline]) -> None:
        self._pipelines = {pipeline.bundle.config.name: pipeline for pipeline in pipelines}

    def find(self, task: Task, name: str | None = None) -> Pipeline:
        """Return the model with this name, or the first model for a task.

        Raises `NotFound` for an unknown name, and `UnsupportedTask` with the routes of the models that there are.
        """
        able = {each: pipeline for each, pipeline in self._pipelines.items() if task in _tasks(pipeline)}
        if name is not None and name not in self._pipelines:
            available = ", ".join(able) or "none"
            raise NotFound(f"no model has the name {name}; available for {_ROUTES[task]}: {available}")
        chosen = able if name is None else {each: able[each] for each in able if each == name}
        if not chosen:
            others = [self._pipelines[name]] if name is not None else list(self._pipelines.values())
            raise UnsupportedTask(no_model_for(task, [pipeline.bundle.config for pipeline in others]))
        return next(iter(chosen.values()))


def no_model_for(task: Task, configs: Sequence[BundleConfig]) -> str:
    """Return the message for a task that none of these models has: what each does, and by which route."""
    routes = [f"{config.name}: {_routes(config)}" for config in configs]
    return f"no model here can {task}; use another route: {'; '.join(routes)}"


def _tasks(pipeline: Pipeline) -> list[Task]:
    return tasks_of(pipeline.bundle.config)


def _routes(config: BundleConfig) -> str:
    return " or ".join(_ROUTES[task] for task in tasks_of(config)) or "none"


# Of an error message; languages are listed where there are more pairs.
_MAX_LISTED_PAIRS = 50


@dataclass(frozen=True, slots=True)
class RouteStep:
    """One model of a route, with the language tags of its bundle."""

    pipeline: Pipeline
    source: str
    target: str

    @property
    def model(self) -> str:
        """The model's name."""
        return self.pipeline.bundle.config.name


@dataclass(frozen=True)
class Route:
    """The way from one language to another: one step, or two through a pivot."""

    steps: tuple[RouteStep, ...]

    @property
    def source(self) -> str:
        """The source language, as the bundle writes it."""
        return self.steps[0].source

    @property
    def target(self) -> str:
        """The target language, as the bundle writes it."""
        return self.steps[-1].target

    @property
    def pivot(self) -> str | None:
        """The language between two steps, or None."""
        return self.steps[0].target if len(self.steps) > 1 else None

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models, in the order of the steps."""
        return tuple(step.model for step in self.steps)

    @cached_property
    def name(self) -> str:
        """Its name in answers, metrics and logs."""
        return "+".join(self.models)

    @property
    def pipeline(self) -> TextPipeline:
        """The pipeline for requests in the languages of this route."""
        if len(self.steps) == 1:
            return self.steps[0].pipeline
        first, second = self.steps
        return PivotPipeline(first.pipeline, second.pipeline, (first.target, second.source))

    @property
    def scorer(self) -> Scorer:
        """The scorer of the model. Raises `InvalidRequest` for a route with a pivot."""
        if len(self.steps) > 1:
            raise InvalidRequest(f"{self.name} cannot score translations: it translates through {self.pivot}")
        return self.steps[0].pipeline.scorer


class Router:
    """Finds the route for a pair of languages; of several models for a pair, the first one serves it.

    A pair without a model has a route through `pivot` if both steps have a model. Raises ValueError for two bundles
    with the same name, which metrics and answers could not distinguish.
    """

    def __init__(self, pipelines: Sequence[Pipeline], pivot: str = "") -> None:
        self._pipelines = tuple(pipelines)
        self.models = TaskModels(self._pipelines)
        self._num_uses = 0
        self._unused = asyncio.Event()
        self._unused.set()
        names = [bundle.config.name for bundle in self.bundles]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(
                f"two bundles have the name {', '.join(sorted(twice))}; export one of them with another --name"
            )
        self._routes: dict[tuple[str, str], Route] = {}
        self._aliases: dict[str, str] = {}
        for pipeline in self._pipelines:
            config = pipeline.bundle.config
            is_multilingual = len(config.source_languages) > 1 and len(config.target_languages) > 1
            for source in config.source_languages:
                for target in config.target_languages:
                    if source != target or not is_multilingual:
                        self._routes.setdefault((source, target), Route((RouteStep(pipeline, source, target),)))
            for spelling, language in config.language_aliases.items():
                self._aliases.setdefault(_normalized(spelling), language)
        direct = list(self._routes.values())
        if pivot:
            self._add_pivots(pivot, direct)

    def _add_pivots(self, pivot: str, direct: Sequence[Route]) -> None:
        into = [route for route in direct if match_language(pivot, [route.target])]
        out_of = [route for route in direct if match_language(pivot, [route.source])]
        for first in into:
            for second in out_of:
                # "pt" to "pt-BR" through English would be a paraphrase, not a translation.
                if match_language(first.source, [second.target]) is None:
                    self._routes.setdefault((first.source, second.target), Route((*first.steps, *second.steps)))

    @property
    def bundles(self) -> list[Bundle]:
        """The bundles, in order of preference."""
        return [pipeline.bundle for pipeline in self._pipelines]

    @property
    def routes(self) -> list[Route]:
        """The routes of all pairs of languages, those with one model first."""
        return list(self._routes.values())

    @cached_property
    def irregular_routes(self) -> list[Route]:
        """The routes that do not follow from the languages of one model: those through a pivot.

        A model translates from each of its source languages to each of its target languages; one with several of both
        does not translate a language to itself. The first of several models for a pair serves it.
        """
        return [route for route in self._routes.values() if route.pivot is not None]

    @cached_property
    def source_languages(self) -> list[str]:
        """All source languages, in the order of the models."""
        return list(dict.fromkeys(route.source for route in self._routes.values()))

    @cached_property
    def target_languages(self) -> list[str]:
        """All target languages, in the order of the models."""
        return list(dict.fromkeys(route.target for route in self._routes.values()))

    @cached_property
    def languages(self) -> list[str]:
        """All languages, in the order of their tags."""
        return sorted({*self.source_languages, *self.target_languages})

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the models loaded during a request, even if other models replace them meanwhile."""
        self._num_uses += 1
        self._unused.clear()
        try:
            yield
        finally:
            self._num_uses -= 1
            if not self._num_uses:
                self._unused.set()

    async def until_unused(self) -> None:
        """Wait until no request uses the models."""
        await self._unused.wait()

    def find(self, source: str | None, target: str | None) -> Route:
        """Return the route from `source` to `target`; None is the only possible language.

        Other spellings of a model's languages are accepted: `deu_Latn` for `de`. Raises `UnsupportedPair` with what is
        available, and `UnsupportedTask` if no model translates.
        """
        self.check_translates()
        source, target = self.canonical(source), self.canonical(target)
        if source is not None and target is not None and (exact := self._routes.get((source, target))) is not None:
            return exact  # no route is preferred to it, and the search grows with the number of languages
        routes = self._matching(source, target)
        wanted = f"from {source or 'any language'} to {target or 'any language'}"
        if not routes:
            raise UnsupportedPair(f"no model translates {wanted}; available: {self._pairs()}")
        if len(routes) > 1:
            raise UnsupportedPair(f"`source` and `target` are ambiguous: {wanted}; available: {self._pairs()}")
        return routes[0]

    def from_any_language(self, target: str | None) -> Route | None:
        """Return a route to `target` of the only model for it, if that model does not read which language a source is.

        None if there are several models, or one that has tokens of source languages.
        """
        routes = self._matching(None, self.canonical(target))
        if len({(route.name, route.target) for route in routes}) != 1 or routes[0].pivot is not None:
            return None
        reads_source = routes[0].steps[0].pipeline.bundle.config.tokenizer.source_language_tokens
        return None if reads_source else routes[0]

    def check_translates(self) -> None:
        """Raise `UnsupportedTask` if no model translates."""
        if not self._routes:
            raise UnsupportedTask(no_model_for("translate", [bundle.config for bundle in self.bundles]))

    def canonical(self, language: str | None) -> str | None:
        """Return the language of which this is another spelling in a checkpoint; otherwise the tag itself."""
        return None if language is None else self._aliases.get(_normalized(language), language)

    def _matching(self, source: str | None, target: str | None) -> list[Route]:
        """Return the routes that match; equal tags go before other tags of the same language, one model before two."""
        # By language, not by route: a model of 200 languages has 40,000 routes.
        sources = {each for each in self.source_languages if source is None or match_language(source, [each])}
        targets = {each for each in self.target_languages if target is None or match_language(target, [each])}
        if len(sources) * len(targets) < len(self._routes):
            pairs = [
                (one, other)
                for one in self.source_languages
                if one in sources
                for other in self.target_languages
                if other in targets
            ]
            routes = [self._routes[pair] for pair in pairs if pair in self._routes]
        else:
            routes = [route for pair, route in self._routes.items() if pair[0] in sources and pair[1] in targets]
        exact_source = source and match_language(source, [route.source for route in routes])
        exact_target = target and match_language(target, [route.target for route in routes])
        preferences: tuple[Callable[[Route], bool], ...] = (
            lambda route: not source or route.source == exact_source,
            lambda route: not target or route.target == exact_target,
            lambda route: route.pivot is None,
        )
        for is_preferred in preferences:
            routes = [route for route in routes if is_preferred(route)] or routes
        return routes

    def _pairs(self) -> str:
        if len(self._routes) > _MAX_LISTED_PAIRS:
            return f"from {', '.join(sorted(self.source_languages))}; to {', '.join(sorted(self.target_languages))}"
        pairs = sorted(self._routes)
        return ", ".join(f"{source} to {target}" for source, target in pairs)


def _normalized(spelling: str) -> str:
    return spelling.strip().replace("-", "_").casefold()
