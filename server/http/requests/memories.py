"""Translation memories of requests."""

import asyncio

from fastapi import Request

from server.http.state import request_record, server_state
from server.interface.errors import InvalidRequest, NotFound
from server.memory.store import DEFAULT_THRESHOLD, Lookup, MemoryStore


def viewer_of(request: Request) -> str:
    """Return the id of the request's API key, "" without one."""
    key = request_record(request).key
    return "" if key is None else key.id


def stored_memories(request: Request) -> MemoryStore:
    """Return the store. Raises `InvalidRequest` if the server has none."""
    if (store := server_state(request).memories) is None:
        raise InvalidRequest("this server has no translation memories; start it with --memory-file")
    return store


def default_memory(request: Request) -> Lookup | None:
    """Return the look-up in the memories that are used for every request of this API key; None without any."""
    if (store := server_state(request).memories) is None:
        return None
    memories = store.chosen(viewer_of(request), None)
    return Lookup(store, memories) if memories else None


async def named_memory(request: Request, memory_id: str | None, threshold: int | None) -> Lookup | None:
    """Return the look-up in the memory with this id, or in those by default. Raises `InvalidRequest`."""
    if not memory_id:
        return default_memory(request)
    if threshold is not None and not 0 <= threshold <= 100:
        raise InvalidRequest(f"the threshold of a translation memory must be 0 to 100. Given: {threshold}")
    store = stored_memories(request)
    try:
        memories = await asyncio.to_thread(store.chosen, viewer_of(request), memory_id)
    except NotFound as error:
        raise InvalidRequest("Invalid or missing translation memory id.") from error
    return Lookup(store, memories, DEFAULT_THRESHOLD if threshold is None else threshold)
