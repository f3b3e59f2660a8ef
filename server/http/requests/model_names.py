"""Names of models for clients that send a model instead of languages: `kvasir:en-de`, `kvasir:de`, or a bundle's."""

from server.interface.errors import InvalidRequest
from server.text.language_tags import match_language, means_detection
from server.translation.router import Router
from server.translation.service import AUTO

MAX_LISTED_PAIRS = 1000
"""Pairs of languages that are listed one by one: NLLB-200 has 40,000, which are megabytes."""
_PREFIX = "kvasir:"
_MAX_NAME_CHARACTERS = 200


def model_names(router: Router) -> list[str]:
    """Return the bundles' names, a name for each pair of languages unless there are many, and one for each target."""
    names = [bundle.config.name for bundle in router.bundles]
    if len(router.routes) <= MAX_LISTED_PAIRS:
        names += [f"{_PREFIX}{route.source}-{route.target}" for route in router.routes]
    return names + [f"{_PREFIX}{target}" for target in router.target_languages]


def listed_models(router: Router) -> list[dict[str, str | int]]:
    """Return the names as OpenAI's clients read them."""
    return [{"id": name, "object": "model", "created": 0, "owned_by": "kvasir"} for name in model_names(router)]


def languages_of(name: str, router: Router) -> tuple[str, str | None] | None:
    """Return the source language, or `AUTO`, and the target language that a model's name selects.

    The target is None for a bundle with several. Returns None for a name that is not one of this server's. Raises
    `InvalidRequest` for one with the prefix and unknown languages.
    """
    name = name.strip()[:_MAX_NAME_CHARACTERS]
    for bundle in router.bundles:
        if bundle.config.name == name:
            sources, targets = bundle.config.source_languages, bundle.config.target_languages
            return (sources[0] if len(sources) == 1 else AUTO), (targets[0] if len(targets) == 1 else None)
    if not name.casefold().startswith(_PREFIX):
        return None
    tags = name[len(_PREFIX) :].strip()
    parts = tags.split("-")
    for num_parts in range(1, len(parts)):
        source, target = "-".join(parts[:num_parts]), "-".join(parts[num_parts:])
        known = match_language(target, router.target_languages)
        if known and (means_detection(source) or match_language(source, router.source_languages)):
            return (AUTO if means_detection(source) else source), target
    if match_language(tags, router.target_languages):
        return AUTO, tags
    raise InvalidRequest(f"no model has the name {name}; available: {', '.join(model_names(router)[:50])}")
