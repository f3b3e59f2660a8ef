import pytest
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from server.http.app import create_app
from server.http.protocols.protocol import Protocol, SharedPaths
from server.http.protocols.registry import PROTOCOLS
from server.operations.settings import ProtocolName, Settings
from tests.fakes.echo import EchoGenerator
from tests.server.http.protocols.fuzzing import check_error

READING = {
    "native": "/v1/limits",
    "libretranslate": "/frontend/settings",
    "deepl": "/v2/usage",
    "google": "/language/translate/v2/languages",
    "apertium": "/listPairs",
    "microsoft": "/microsoft/languages",
}
WRITING = {
    "live": ("/v1/live", {}),
    "deeplx": ("/deeplx/translate", {"text": "Tea.", "target_lang": "de"}),
    "extensions": ("/kiss", {"text": "Tea.", "from": "en", "to": "de"}),
    "openai": (
        "/v1/chat/completions",
        {"model": "kvasir:de", "messages": [{"role": "user", "content": "Where is the station?"}]},
    ),
    "games": ("/sugoi/", {"message": "translate sentences", "content": "Tea."}),
    "mtranserver": ("/mtranserver/translate", {"text": "Tea.", "from": "en", "to": "de"}),
}


SHARED = [
    pytest.param(protocol, shared, id=f"{protocol.name}-{shared.paths[0]}")
    for protocol in PROTOCOLS.values()
    for shared in protocol.shared
]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_route_and_upload_path_of_a_protocol_has_its_error_format(name: str) -> None:
    protocol = PROTOCOLS[name]
    paths = [route.path for router in protocol.routers for route in router.routes if isinstance(route, APIRoute)]
    assert paths
    for path in (*paths, *protocol.upload_paths):
        assert any(path.startswith(own) if own.endswith("/") else path == own for own in protocol.paths), path
    assert set(protocol.upload_paths) <= set(paths)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_that_is_not_selected_is_not_found(echo: EchoGenerator, name: ProtocolName) -> None:
    with TestClient(create_app(Settings(protocols=[name]), [echo])) as client:
        statuses = {each: client.get(address).status_code for each, address in READING.items()}
        statuses |= {each: client.post(address, json=body).status_code for each, (address, body) in WRITING.items()}
        assert set(statuses) == set(PROTOCOLS)
        assert {each for each, status in statuses.items() if status < 300} == {name}
        assert {status for each, status in statuses.items() if each != name} == {404}
        assert (client.get("/").status_code == 200) == (name == "native")
        assert client.get("/health/live").status_code == 200
        answer = client.get(next(address for each, address in READING.items() if each != name))
        assert answer.json()["error"]["code"] == "not_found"


@pytest.mark.parametrize(("protocol", "shared"), SHARED)
def test_a_protocol_alone_answers_its_shared_paths_without_their_sign(
    echo: EchoGenerator, protocol: Protocol, shared: SharedPaths
) -> None:
    with TestClient(create_app(Settings(protocols=[protocol.name]), [echo])) as client:  # type: ignore[list-item]
        for path in shared.paths:
            for answer in (client.get(path), client.post(path, json={}), client.post(path, content=b"[")):
                assert answer.status_code in (200, 400, 404, 405), answer.text
                if answer.status_code != 200:
                    check_error(answer, protocol.error_format)
