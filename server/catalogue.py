"""The models a server has, and which of them translates between two languages."""

from collections.abc import Sequence
from dataclasses import dataclass

from export.bundle import BundleConfig
from server.errors import UnsupportedPair
from server.languages import match_language
from server.translator import Translator


@dataclass(frozen=True, slots=True)
class Route:
    """The translator for a pair of languages, and the two as its bundle calls them."""

    translator: Translator
    source: str
    target: str


class Catalogue:
    """Translators by language pair; where two have the same pair, the one named first serves it.

    Raises ValueError for two bundles of one name: metrics and answers could not tell them apart.
    """

    def __init__(self, translators: Sequence[Translator]) -> None:
        self._translators = tuple(translators)
        names = [config.name for config in self.configs]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(
                f"two bundles are called {', '.join(sorted(twice))}; export one of them with another --name"
            )

    @property
    def configs(self) -> list[BundleConfig]:
        """What the bundles say of themselves."""
        return [translator.bundle.config for translator in self._translators]

    def find(self, source: str | None, target: str | None) -> Route:
        """Who translates from `source` to `target`; None where only one language is possible.

        Raises `UnsupportedPair`, naming the pairs there are.
        """
        routes = [route for translator in self._translators for route in _routes(translator, source, target)]
        wanted = f"from {source or 'any language'} to {target or 'any language'}"
        if not routes:
            raise UnsupportedPair(f"no model here translates {wanted}; there is {self._pairs()}")
        if len({(route.source, route.target) for route in routes}) > 1:
            raise UnsupportedPair(f"say which source and target you mean; {wanted} there is {self._pairs()}")
        return routes[0]

    def _pairs(self) -> str:
        pairs = {(s, t) for config in self.configs for s in config.source_languages for t in config.target_languages}
        return ", ".join(f"{source} to {target}" for source, target in sorted(pairs))


def _routes(translator: Translator, source: str | None, target: str | None) -> list[Route]:
    config = translator.bundle.config
    sources = _matching(source, config.source_languages)
    targets = _matching(target, config.target_languages)
    return [Route(translator, each_source, each_target) for each_source in sources for each_target in targets]


def _matching(tag: str | None, languages: Sequence[str]) -> Sequence[str]:
    if tag is None:
        return languages
    language = match_language(tag, languages)
    return () if language is None else (language,)
