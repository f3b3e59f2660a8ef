"""Admission of requests: by the load of the engines, and by API keys, which are charged for characters."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from fastapi import Request

from server.documents.rewriting import Translate, TranslateTexts
from server.http.requests.parameters import read_parameters
from server.http.state import RequestRecord, ServerState, request_record, server_state
from server.interface.client_identity import ClientLimits, client_of_call, limits_of_client
from server.interface.errors import MissingApiKey


def admit(server: ServerState, record: RequestRecord) -> None:
    """Admit a request once: a full server with a cache admits a sample of the requests that it counts."""
    if not record.is_admitted:
        server.check_admission()
        record.is_admitted = True


def begin_request(server: ServerState, record: RequestRecord, text: str) -> None:
    """Find the key with this text, count the request, and note both in the request's record.

    Raises `InvalidApiKey`, and `RateLimited`.
    """
    assert server.key_gate is not None
    key = server.key_gate.authenticate(text)
    server.key_gate.begin_request(key)
    record.key, record.client = key, f"key {key.id}"
    client_of_call.set(record.client)
    limits = key.limits
    limits_of_client.set(ClientLimits(limits.waiting_sentences, limits.documents, bool(limits.join_lines)))


def key_in_body(parameter: str, is_open: Callable[[str], bool]) -> Callable[[Request], Awaitable[None]]:
    """Return a dependency of routes whose clients may send the key as a parameter of the body.

    Paths for which `is_open` returns true need no key.
    """

    async def require_key(request: Request) -> None:
        """Raise `MissingApiKey`, `InvalidApiKey` or `RateLimited`, unless the head had a valid key."""
        server, record = server_state(request), request_record(request)
        if server.key_gate is None or record.key is not None or is_open(request.url.path):
            return
        sent = await read_parameters(request)
        text = sent.text(parameter)
        if not text:
            raise missing_key(parameter)
        begin_request(server, record, text)

    return require_key


def missing_key(parameter: str | None) -> MissingApiKey:
    """Return the error for a request without a key."""
    also = "" if parameter is None else f" or as `{parameter}`"
    return MissingApiKey(f"this server requires an API key; send it as `Authorization: Bearer KEY`{also}")


def charge(request: Request, num_characters: int) -> None:
    """Charge the request's key for characters to translate. They are returned if the request fails.

    Raises `QuotaExceeded` if the key has fewer left today.
    """
    record, gate = request_record(request), server_state(request).key_gate
    if gate is not None and record.key is not None:
        record.charges.append(gate.charge(record.key, num_characters))


def charged(request: Request, translate: Translate) -> Translate:
    """Return functions that translate a document and charge the request's key for each block of texts."""
    gate, key = server_state(request).key_gate, request_record(request).key
    if gate is None or key is None:
        return translate

    def charging(function: TranslateTexts) -> TranslateTexts:
        async def charge_and_translate(texts: Sequence[str]) -> Sequence[str]:
            num_characters = sum(map(len, texts))
            charge = gate.charge(key, num_characters)
            try:
                return await function(texts)
            except BaseException:
                gate.refund(charge)
                raise

        return charge_and_translate

    html = None if translate.html is None else charging(translate.html)
    return replace(translate, text=charging(translate.text), html=html)
