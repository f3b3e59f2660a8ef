"""DeepL-compatible routes for languages, and for the products of DeepL that this server lacks."""

from fastapi import APIRouter, Request, Response

from server.http.protocols.deepl.fields import DEEPL, language_code, one_of, target_codes
from server.http.protocols.deepl.glossaries import glossary_pairs
from server.http.requests.parameters import read_parameters
from server.http.responses.examples import answers
from server.http.responses.large_json import json_response
from server.http.state import server_state
from server.interface.errors import InvalidRequest, NotFound
from server.text.formality import has_formality
from server.text.language_tags import display_name
from server.translation.router import Router

router = APIRouter(tags=["DeepL-compatible"])

# The features of each resource, and the sides of a pair that must have them: "s" the source, "t" the target.
_RESOURCES = {
    "translate_text": {"formality": "t", "tag_handling": "st", "glossary": "st", "auto_detection": "s"},
    "translate_document": {"formality": "t", "glossary": "st", "auto_detection": "s"},
    "glossary": {},
    "translation_memory": {},
}
# What DeepL has under these addresses.
_PRODUCTS_ELSEWHERE = {
    "/v2/write": "write",
    "/v3/style_rules": "style_rules",
    "/v3/voice": "voice",
}
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


@router.head("/v2/languages", include_in_schema=False)
@router.get(
    "/v2/languages",
    responses=answers(
        "DeepLLanguages",
        [{"language": "DE", "name": "German", "supports_formality": True}],
        optional=["supports_formality"],
    )
    | DEEPL.responses(400, 503),
)
@router.post("/v2/languages", include_in_schema=False)
async def languages(request: Request, type: str | None = None) -> Response:  # noqa: A002
    """Return the source languages (`type=source`, the default) or the target languages (`type=target`)."""
    server = server_state(request)
    sent = await read_parameters(request)
    kind = one_of(sent, "type", ("source", "target")) or type or "source"
    _, model_router = server.accept()
    if kind == "source":
        codes = dict.fromkeys(language_code(tag) for tag in sorted(model_router.source_languages))
        return json_response([{"language": code, "name": display_name(code)} for code in codes])
    codes = dict.fromkeys(code for tag in sorted(model_router.target_languages) for code in target_codes(tag))
    return json_response(
        [{"language": code, "name": display_name(code), "supports_formality": has_formality(code)} for code in codes]
    )


_SUPPORT = {"s": {"needs_source_support": True}, "t": {"needs_target_support": True}}


@router.get(
    "/v3/languages/resources",
    responses=answers(
        "DeepLResources",
        [{"name": "glossary", "features": [{"name": "formality", **_SUPPORT["s"], **_SUPPORT["t"]}]}],
        optional=[*_SUPPORT["s"], *_SUPPORT["t"]],
    )
    | DEEPL.responses(503),
)
async def resources(_: Request) -> Response:
    """Return the resources for which `/v3/languages` has languages, and their features."""
    return json_response(
        [
            {
                "name": name,
                "features": [
                    {"name": feature, **{field: True for side in sides for field in _SUPPORT[side]}}
                    for feature, sides in features.items()
                ],
            }
            for name, features in _RESOURCES.items()
        ]
    )


@router.get(
    "/v3/languages",
    responses=answers(
        "DeepLSupport",
        [
            {
                "lang": "de",
                "name": "German",
                "usable_as_source": False,
                "usable_as_target": True,
                "status": "stable",
                "features": {feature: {"status": "stable"} for feature in _RESOURCES["translate_text"]},
            }
        ],
        optional=list(_RESOURCES["translate_text"]),
    )
    | DEEPL.responses(400, 404, 503),
)
async def languages_of_resource(request: Request, resource: str | None = None) -> Response:
    """Return the languages of a resource, such as `translate_text`, each with its features."""
    if not resource:
        raise InvalidRequest("Parameter 'resource' not specified.")
    if resource in _PRODUCTS_ELSEWHERE.values():
        raise _missing(resource)
    if resource not in _RESOURCES:
        raise InvalidRequest(f"Value for 'resource' not supported. Supported: {', '.join(_RESOURCES)}")
    _, model_router = server_state(request).accept()
    sources, targets = _languages(model_router, resource)
    with_glossaries = {language for pair in glossary_pairs(model_router) for language in pair}
    found = []
    for code in sorted(sources | targets):
        is_source, is_target = code in sources, code in targets
        is_available = {
            "formality": is_target and has_formality(code),
            "tag_handling": True,
            "glossary": language_code(code).lower() in with_glossaries,
            "auto_detection": is_source,
        }
        found.append(
            {
                "lang": code,
                "name": display_name(code),
                "usable_as_source": is_source,
                "usable_as_target": is_target,
                "status": "stable",
                "features": {each: {"status": "stable"} for each in _RESOURCES[resource] if is_available[each]},
            }
        )
    return json_response(found)


async def product_elsewhere(request: Request) -> None:
    """Answer requests for a product of DeepL that this server lacks."""
    raise _missing(next(name for path, name in _PRODUCTS_ELSEWHERE.items() if request.url.path.startswith(path)))


for _path in _PRODUCTS_ELSEWHERE:
    for _suffix in ("", "/{rest:path}"):
        router.add_api_route(f"{_path}{_suffix}", product_elsewhere, methods=_METHODS, include_in_schema=False)


def _missing(product: str) -> NotFound:
    return NotFound(f"This server does not have {product}, only: {', '.join(_RESOURCES)}")


def _languages(model_router: Router, resource: str) -> tuple[set[str], set[str]]:
    """Return the languages that can be sources and targets of a resource, as BCP 47 writes them."""
    if resource == "glossary":
        pairs = glossary_pairs(model_router)
        return {source for source, _ in pairs}, {target for _, target in pairs}
    return (
        {_bcp47(language_code(tag)) for tag in model_router.source_languages},
        {_bcp47(code) for tag in model_router.target_languages for code in target_codes(tag)},
    )


def _bcp47(code: str) -> str:
    """Return a language code in its usual case: zh-Hant, pt-BR."""
    language, *subtags = code.split("-")
    return "-".join([language.lower(), *(tag.title() if len(tag) == 4 else tag.upper() for tag in subtags)])
