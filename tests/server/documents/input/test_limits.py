import pytest

from server.documents.input.limits import Density, FileLimits
from server.interface.errors import DocumentTooComplex

_DENSITY = Density(2, 10)


def test_a_document_may_have_some_parts_and_more_by_its_size() -> None:
    assert [_DENSITY.most(size) for size in (0, 9, 10, 39)] == [2, 2, 3, 5]
    _DENSITY.check(5, 39, "cells")
    with pytest.raises(DocumentTooComplex, match=r"^39 characters or bytes of a document may have 5 cells. They have"):
        _DENSITY.check(6, 39, "cells")


def test_parts_are_yielded_up_to_the_first_one_too_many() -> None:
    assert list(_DENSITY.bounded("abc", 10, "cells")) == ["a", "b", "c"]
    read: list[str] = []
    with pytest.raises(DocumentTooComplex):
        read.extend(_DENSITY.bounded("abcd", 10, "cells"))
    parts = _DENSITY.bounded(iter("abcd"), 10, "cells")
    assert [next(parts), next(parts), next(parts)] == ["a", "b", "c"]
    with pytest.raises(DocumentTooComplex):
        next(parts)


def test_a_document_of_exactly_the_size_is_held() -> None:
    limits = FileLimits(max_held_bytes=10)
    assert [limits.holds(size) for size in (0, 10, 11)] == [True, True, False]
