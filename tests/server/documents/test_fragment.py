import gc

from server.documents.fragment import Atom, Wrap, plain_texts, with_plain_texts

_FRAGMENT = ("a ", Wrap(1, ("soft ", Wrap(2, ("link",), is_soft=False), " word")), Atom(3), " end")


def test_hard_elements_divide_the_plain_texts() -> None:
    assert plain_texts(_FRAGMENT) == ["a soft ", "link", " word", " end"]


def test_the_texts_of_fragments_leave_nothing_to_the_garbage_collector() -> None:
    """Three objects a paragraph stayed until the next full collection: 150,000 after a document of 20,000."""
    gc.collect()
    gc.disable()
    try:
        for _ in range(100):
            with_plain_texts(_FRAGMENT, plain_texts(_FRAGMENT))
        assert gc.collect() < 100
    finally:
        gc.enable()
