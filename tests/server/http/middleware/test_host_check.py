import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.http.middleware.gate import default_hosts
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator

LOCAL = ["localhost", "localhost:8000", "kvasir.localhost", "127.0.0.1:8000", "[::1]:8000", "192.0.2.7"]


def _status(echo: EchoGenerator, settings: Settings, method: str = "GET", **headers: str) -> int:
    with TestClient(create_app(settings, [echo])) as client:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return client.request(method, "/v1/documents" if method == "POST" else "/v1/limits", headers=named).status_code


@pytest.mark.parametrize("host", LOCAL)
def test_local_names_and_addresses_are_always_accepted(echo: EchoGenerator, host: str) -> None:
    assert _status(echo, Settings(), host=host) == 200
    assert _status(echo, Settings(host="0.0.0.0", allowed_hosts=["kvasir.example"]), host=host) == 200


@pytest.mark.parametrize("host", ["attacker.example", "localhost.attacker.example", "127.0.0.1.attacker.example"])
def test_other_names_are_rejected_on_a_loopback_address(echo: EchoGenerator, host: str) -> None:
    assert _status(echo, Settings(), host=host) == 403
    assert _status(echo, Settings(host="0.0.0.0"), host=host) == 200
    assert _status(echo, Settings(allowed_hosts=["*"]), host=host) == 200


def test_names_of_the_setting_are_accepted(echo: EchoGenerator) -> None:
    settings = Settings(allowed_hosts=["kvasir.example", "*.wide.example"])
    assert _status(echo, settings, host="KVASIR.example:443") == 200
    assert _status(echo, settings, host="deep.wide.example") == 200
    assert _status(echo, settings, host="wide.example") == 403


@pytest.mark.parametrize(
    ("host", "hosts"), [("127.0.0.1", []), ("::1", []), ("localhost", []), ("0.0.0.0", ["*"]), ("kvasir.lan", ["*"])]
)
def test_any_name_is_accepted_by_default_unless_the_address_is_local(host: str, hosts: list[str]) -> None:
    assert default_hosts(host) == hosts


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://attacker.example"},
        {"origin": "null"},
        {"origin": "http://testserver:8080"},
        {"origin": "http://testserver", "sec_fetch_site": "cross-site"},
        {"origin": "http://other.testserver", "sec_fetch_site": "same-site"},
    ],
)
def test_writing_requests_of_foreign_pages_are_rejected(echo: EchoGenerator, headers: dict[str, str]) -> None:
    assert _status(echo, Settings(), "POST", **headers) == 403
    assert _status(echo, Settings(), "GET", **headers) == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://testserver"},
        {"origin": "https://behind.a.proxy", "sec_fetch_site": "same-origin"},
        {"origin": "chrome-extension://abc", "sec_fetch_site": "cross-site"},
    ],
)
def test_programs_and_the_own_page_may_write(echo: EchoGenerator, headers: dict[str, str]) -> None:
    assert _status(echo, Settings(), "POST", **headers) == 422


def test_an_origin_of_the_setting_may_write(echo: EchoGenerator) -> None:
    settings = Settings(cors_origins=["https://page.example"])
    assert _status(echo, settings, "POST", origin="https://page.example") == 422
    assert _status(echo, settings, "POST", origin="https://other.example") == 403
