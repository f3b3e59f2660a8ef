"""The models a server has, and which of them translates between two languages, or which two through a third."""

from collections.abc import Sequence
from dataclasses import dataclass

from bundle.manifest import BundleConfig
from server.interface.errors import InvalidRequest, UnsupportedPair
from server.text.language_tags import match_language
from server.translation.pipeline import Pipeline
from server.translation.pivot import PivotPipeline, TextTranslator
from server.translation.scoring import Scorer


@dataclass(frozen=True, slots=True)
class RouteStep:
    """One model's part of the way, with the languages as its bundle calls them."""

    translator: Pipeline
    source: str
    target: str

    @property
    def model(self) -> str:
        """The model's name."""
        return self.translator.bundle.config.name


@dataclass(frozen=True, slots=True)
class Route:
    """Who translates from one language to another: one model, or two through a pivot."""

    legs: tuple[RouteStep, ...]

    @property
    def source(self) -> str:
        """The language that is read, as the bundle calls it."""
        return self.legs[0].source

    @property
    def target(self) -> str:
        """The language that is written, as the bundle calls it."""
        return self.legs[-1].target

    @property
    def pivot(self) -> str | None:
        """The language in between, where there is one."""
        return self.legs[0].target if len(self.legs) > 1 else None

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the models, in the order they are asked."""
        return tuple(leg.model for leg in self.legs)

    @property
    def name(self) -> str:
        """What answers, metrics and logs call it."""
        return "+".join(self.models)

    @property
    def translator(self) -> TextTranslator:
        """Translates requests in the languages of this route."""
        if len(self.legs) == 1:
            return self.legs[0].translator
        first, second = self.legs
        return PivotPipeline(first.translator, second.translator, (first.target, second.source))

    @property
    def scorer(self) -> Scorer:
        """Scores translations; raises `InvalidRequest` where no single model could."""
        if len(self.legs) > 1:
            raise InvalidRequest(f"{self.name} translates through {self.pivot}: it cannot score a translation")
        return self.legs[0].translator.scorer


class Router:
    """Translators by language pair; where two have the same pair, the one named first serves it.

    A pair without a model goes through `pivot` where both legs have one. Raises ValueError for two bundles of one
    name: metrics and answers could not tell them apart.
    """

    def __init__(self, translators: Sequence[Pipeline], pivot: str = "") -> None:
        self._translators = tuple(translators)
        names = [config.name for config in self.configs]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(
                f"two bundles are called {', '.join(sorted(twice))}; export one of them with another --name"
            )
        self._routes: dict[tuple[str, str], Route] = {}
        for translator in self._translators:
            config = translator.bundle.config
            for source in config.source_languages:
                for target in config.target_languages:
                    self._routes.setdefault((source, target), Route((RouteStep(translator, source, target),)))
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
                    self._routes.setdefault((first.source, second.target), Route((*first.legs, *second.legs)))

    @property
    def configs(self) -> list[BundleConfig]:
        """What the bundles say of themselves."""
        return [translator.bundle.config for translator in self._translators]

    @property
    def routes(self) -> list[Route]:
        """Every pair of languages, those that have a model of their own first."""
        return list(self._routes.values())

    @property
    def source_languages(self) -> list[str]:
        """What can be read, in the order of the models."""
        return list(dict.fromkeys(route.source for route in self._routes.values()))

    @property
    def target_languages(self) -> list[str]:
        """What can be written, in the order of the models."""
        return list(dict.fromkeys(route.target for route in self._routes.values()))

    def find(self, source: str | None, target: str | None) -> Route:
        """Who translates from `source` to `target`; None where only one language is possible.

        Raises `UnsupportedPair`, naming the pairs there are.
        """
        routes = self._matching(source, target)
        wanted = f"from {source or 'any language'} to {target or 'any language'}"
        if not routes:
            raise UnsupportedPair(f"no model here translates {wanted}; there is {self._pairs()}")
        if len(routes) > 1:
            raise UnsupportedPair(f"say which source and target you mean; {wanted} there is {self._pairs()}")
        return routes[0]

    def _matching(self, source: str | None, target: str | None) -> list[Route]:
        """The routes that are meant. The very tags go before others of the same languages, models before pivots."""
        routes = [
            route
            for route in self._routes.values()
            if (source is None or match_language(source, [route.source]))
            and (target is None or match_language(target, [route.target]))
        ]
        exact_source = source and match_language(source, [route.source for route in routes])
        exact_target = target and match_language(target, [route.target for route in routes])
        for narrowed in (
            [route for route in routes if not source or route.source == exact_source],
            [route for route in routes if not target or route.target == exact_target],
            [route for route in routes if route.pivot is None],
        ):
            both = [route for route in routes if route in narrowed]
            routes = both or routes
        return routes

    def _pairs(self) -> str:
        pairs = sorted(self._routes)
        return ", ".join(f"{source} to {target}" for source, target in pairs)
