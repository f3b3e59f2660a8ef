"""The bundles that translate from one language to another, among those of a folder."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from bundle.loading import Bundle, load_bundle
from server.operations.bundle_search import bundle_folders
from server.operations.defaults import DEFAULT_PIVOT
from server.translation.pipeline import Pipeline
from server.translation.router import Router


@dataclass(frozen=True, slots=True)
class _NotStarted:
    """A bundle in the place of its pipeline: routes are found by manifests alone, before engines start."""

    bundle: Bundle


def chosen_bundles(folder: Path, source: str | None, target: str | None) -> list[Bundle]:
    """Return the bundle for this pair of languages, or two through the pivot language.

    `folder` is a bundle or contains bundles. Without a source language, a model of several serves if it does not read
    which one a text is in. Raises `BundleError`, and `UnsupportedPair` with the available pairs.
    """
    bundles = [load_bundle(each) for each in bundle_folders([folder])]
    router = Router([cast(Pipeline, _NotStarted(bundle)) for bundle in bundles], DEFAULT_PIVOT)
    route = (router.from_any_language(target) if source is None else None) or router.find(source, target)
    return [step.pipeline.bundle for step in route.steps]
