import pytest

from loadtest.sending.addresses import Address, address_of


@pytest.mark.parametrize(
    ("url", "address", "host"),
    [
        ("http://127.0.0.1:8000", Address("http", "127.0.0.1", 8000, ""), "127.0.0.1:8000"),
        (
            "https://translate.example/kvasir/",
            Address("https", "translate.example", 443, "/kvasir"),
            "translate.example",
        ),
        ("http://[::1]:80", Address("http", "::1", 80, ""), "[::1]"),
    ],
)
def test_a_url_is_parsed_into_its_parts(url: str, address: Address, host: str) -> None:
    assert address_of(url) == address
    assert address.host_header == host


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://localhost", "http://"])
def test_an_invalid_url_is_rejected_with_an_example(url: str) -> None:
    with pytest.raises(ValueError, match=r"http://127\.0\.0\.1:8000"):
        address_of(url)
