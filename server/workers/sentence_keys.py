"""Keys of sentences, by which answers are cached and requests in flight are shared."""

from itertools import count

from server.interface.request import Request, SentenceParams

# Everything that an answer of one model depends on: the parameters, as a number, and the source tokens. One object of
# bytes is hashed once; a tuple of bytes and parameters is hashed at each of a dozen look-ups.
SentenceKey = bytes

# Approximate sizes in CPython: an entry with default parameters, the objects of other ones.
_PARAMS_BYTES = 512
_TUPLE_BYTES, _REFERENCE_BYTES, _OBJECT_BYTES = 56, 8, 32


class SentenceKeys:
    """Keys of requests: equal for requests with equal answers, and for no others."""

    def __init__(self, max_bytes: int) -> None:
        """`max_bytes` limits the memory of parameters whose number is remembered."""
        self._max_bytes = max_bytes
        self._numbers = count()
        self._prefixes: dict[SentenceParams, bytes] = {}
        self._num_bytes = 0

    def key(self, request: Request) -> SentenceKey:
        """Return the key of a request."""
        prefix = self._prefixes.get(request.params)
        if prefix is None:
            self._num_bytes += _params_bytes(request.params)
            if self._num_bytes > self._max_bytes:
                self._prefixes.clear()  # numbers are never reused: equal requests before and after share nothing
                self._num_bytes = _params_bytes(request.params)
            prefix = self._prefixes[request.params] = next(self._numbers).to_bytes(8)
        return prefix + request.source.tobytes()


def _params_bytes(params: SentenceParams) -> int:
    token_lists = (params.target_prefix, params.required_phrases, params.suppress_phrases, params.forced_target)
    options = params.options.changed()
    return _PARAMS_BYTES + sum(map(_num_bytes, (*token_lists, *options.values())))


def _num_bytes(value: object) -> int:
    if isinstance(value, tuple):
        return _TUPLE_BYTES + sum(_REFERENCE_BYTES + _num_bytes(item) for item in value) if value else 0
    return _OBJECT_BYTES + 4 * len(value) if isinstance(value, str) else _OBJECT_BYTES
