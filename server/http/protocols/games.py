"""Protocols of game translators: CustomTranslate of XUnity.AutoTranslator, and clients of Sugoi."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse

from server.http.protocols.protocol import Protocol, SharedPaths
from server.http.requests.parameters import read_parameters
from server.http.requests.translation_call import translate_texts
from server.http.responses.errors import ErrorFormat
from server.http.state import server_state
from server.interface.errors import InvalidRequest, TextTooLong
from server.text.language_tags import match_language
from server.translation.router import Route, Router

GAMES = ErrorFormat("GamesError", lambda _, __, message: {"error": message}, {InvalidRequest: 400, TextTooLong: 413})

router = APIRouter(tags=["Game translators"], responses=GAMES.responses(400, 413, 429, 500, 503, 504))

# Sugoi translates from Japanese to English, and its requests name no languages.
_SUGOI_SOURCE, _SUGOI_TARGET = "ja", "en"


# With `response_class`, the description would give errors the type of the translation.
@router.get("/xunity/translate", responses={200: {"content": {"text/plain": {}}}})
async def custom_translate(request: Request) -> PlainTextResponse:
    """Translate `text` from `from` to `to`. The answer is the translation alone. Answers also at `/translate`."""
    sent = await read_parameters(request)
    outcome = await translate_texts(request, [sent.required_text("text")], sent.text("from"), sent.text("to"))
    return PlainTextResponse(outcome.result.translations[0].text)


@router.post("/sugoi/")
async def sugoi(request: Request) -> JSONResponse:
    """Translate `content`, a text or a list, or the list `batch`. Answers also at `/`, recognised by `message`.

    The languages are Japanese and English if a model translates them, else those of the server's only pair.
    """
    server = server_state(request)
    sent = await read_parameters(request)
    name = "batch" if sent.is_list("batch") else "content"
    texts, is_list = sent.texts(name), sent.is_list(name)
    if not texts and not is_list:
        raise InvalidRequest("`content` is missing")
    _, model_router = server.accept()
    route = _sugoi_route(model_router)
    outcome = await translate_texts(request, texts, route.source, route.target)
    translated = [translation.text for translation in outcome.result.translations]
    return JSONResponse(translated if is_list else translated[0])


def _sugoi_route(model_router: Router) -> Route:
    routes = model_router.routes
    for route in routes:
        if match_language(_SUGOI_SOURCE, [route.source]) and match_language(_SUGOI_TARGET, [route.target]):
            return route
    if len(routes) > 1:
        raise InvalidRequest("no model translates from ja to en, and requests of this protocol name no languages")
    return routes[0]


GAMES_PROTOCOL = Protocol(
    name="games",
    routers=(router,),
    error_format=GAMES,
    paths=("/xunity/", "/sugoi/"),
    shared=(
        SharedPaths(
            "/xunity",
            ("/translate",),
            lambda fields: fields.method == "GET" and fields.has("from", "to", "text"),
        ),
        SharedPaths("/sugoi", ("/",), lambda fields: fields.method == "POST" and fields.has("message")),
    ),
    key_queries=("token",),
)
