"""The fixture that LibreTranslate's own tests ask for: what Flask's test client is, over HTTP."""

import os
from collections.abc import Mapping

import httpx2
import pytest


class Answer:
    """As Flask's test client gives it."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.status_code = answer.status_code
        self.data = answer.content
        self._answer = answer

    @property
    def json(self) -> object:
        """The body, read."""
        content: object = self._answer.json()
        return content


class Client:
    """GET and POST of the server that the environment names."""

    def __init__(self, http: httpx2.Client) -> None:
        self._http = http

    def get(self, path: str) -> Answer:
        """A request without a body."""
        return Answer(self._http.get(path))

    def post(self, path: str, data: Mapping[str, str] | None = None, json: object = None) -> Answer:
        """A form or JSON."""
        return Answer(self._http.post(path, json=json) if json is not None else self._http.post(path, data=data))


@pytest.fixture
def client() -> Client:
    """For every test."""
    return Client(httpx2.Client(base_url=os.environ["KVASIR_URL"], timeout=60.0))
