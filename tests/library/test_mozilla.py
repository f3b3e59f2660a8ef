import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bundle.loading import load_bundle
from library.home import Home
from library.mozilla import Metadata, choose_model, parse_registry, read_metadata
from library.pull import PullOptions, pull
from model.checkpoints.checkpoint import CheckpointError
from model.families.registry import read_checkpoint
from tests.fakes.hub_server import HubServer, hub_server
from tests.library.registry_entries import CONTENTS, KINDS, entry, measured, packed, packed_record, record
from tests.model.families.marian.random_files import MarianShape, write_binary, write_random_model


@pytest.fixture
def server() -> Iterator[HubServer]:
    with hub_server() as running:
        for tier in ("tiny", "base-memory"):
            for name, content in CONTENTS.items():
                running.plain_files[f"/cdn-of-models/models/{tier}/{name}.gz"] = gzip.compress(content, mtime=0)
        listed = {
            "baseUrl": f"{running.address}/cdn-of-models",
            "models": {"en-de": [entry("tiny"), entry("base-memory"), entry("base", release="Nightly")]},
        }
        running.plain_files["/db/models.json"] = json.dumps(listed).encode()
        yield running


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("KVASIR_HOME", str(tmp_path / "home"))
    return Home(tmp_path / "home")


def test_the_best_released_tier_is_downloaded_and_checked(server: HubServer, home: Home) -> None:
    lines: list[str] = []
    options = PullOptions(registry=f"{server.address}/db/models.json", download_only=True)
    folder = pull("en-de", options, home, lines.append)
    assert lines == ["downloading en-de, tier base-memory, licence: MPL-2.0"]
    metadata = json.loads((folder / "metadata.json").read_text())
    assert (metadata["architecture"], metadata["sourceLanguage"], metadata["license"]) == (
        "base-memory",
        "en",
        "MPL-2.0",
    )
    assert {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "metadata.json"} == CONTENTS

    server.requests.clear()
    assert pull("en-de", options, home) == folder
    # The registry has the hash of the weights only.
    assert [path.rpartition("/")[2].partition(".")[0] for path in server.paths()] == ["models", "lex", "vocab"]


@pytest.fixture
def student(server: HubServer, tmp_path: Path) -> dict[str, bytes]:
    """Files of a random student, which the registry has as the tiny model."""
    folder = write_random_model(tmp_path / "student", MarianShape())
    with np.load(folder / "model.npz", allow_pickle=False) as stored:
        arrays = dict(stored)
    description = arrays.pop("special:model.yml").tobytes().rstrip(b"\0").decode()
    (folder / "model.npz").unlink()
    write_binary(folder / "model.ende.intgemm.alphas.bin", arrays, description, is_int8=True)
    (folder / "lex.50.50.ende.s2t.bin").write_bytes(CONTENTS["lex.50.50.ende.s2t.bin"])
    contents = {name: (folder / name).read_bytes() for name in CONTENTS}
    tiny = entry("tiny")
    for kind, (name, content) in zip(KINDS, contents.items(), strict=True):
        server.plain_files[f"/cdn-of-models/models/tiny/{name}.gz"] = gzip.compress(content, mtime=0)
        if kind == "model":
            tiny["files"][kind] |= measured(content)  # type: ignore[index]
    listed = {"baseUrl": f"{server.address}/cdn-of-models", "models": {"en-de": [tiny]}}
    server.plain_files["/db/models.json"] = json.dumps(listed).encode()
    return contents


@pytest.mark.usefixtures("_copying_not_measured")
def test_a_pair_becomes_a_bundle_with_a_card(
    server: HubServer, home: Home, student: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("library.pull.REGISTRY_URL", f"{server.address}/db/models.json")
    lines: list[str] = []
    folder = pull("en-de", PullOptions(), home, lines.append)
    assert lines[0] == "downloading en-de, tier tiny, licence: MPL-2.0"
    config = load_bundle(folder).config
    assert (config.name, config.source_languages, config.target_languages) == ("en-de", ("en",), ("de",))
    assert config.shapes.is_recurrent
    card = (folder / "README.md").read_text("utf-8")
    assert "Licence: MPL-2.0" in card
    assert card.endswith("| FLORES | int8 | 40.0 |\n")
    (made,) = home.entries()
    assert made.origin.name == "mozilla/en-de"
    assert not any((home.root / "downloads" / "mozilla").iterdir())
    server.requests.clear()
    assert pull("en-de", PullOptions(), home) == folder
    assert server.paths() == []


def test_a_folder_copied_from_firefox_is_a_checkpoint(student: dict[str, bytes], tmp_path: Path) -> None:
    for name, content in student.items():
        (tmp_path / name).write_bytes(content)
    checkpoint = read_checkpoint(tmp_path)
    assert (checkpoint.languages.source, checkpoint.languages.target) == (("en",), ("de",))
    assert checkpoint.provenance.family == "marian-nmt"


def test_a_pair_that_mozilla_lacks_is_that_of_opus_mt(
    hub: HubServer, home: Home, copied_conversions: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KVASIR_HOME", str(home.root))
    lines: list[str] = []
    pull("en-de", PullOptions(), home, lines.append)
    assert lines[0] == "Mozilla's registry has no model for en-de, OPUS-MT is used instead"
    assert lines[1] == "en-de is Helsinki-NLP/opus-mt-en-de"
    # The model in the cache is served without a look into the registry.
    hub.plain_files.clear()
    lines.clear()
    pull("en-de", PullOptions(), home, lines.append)
    assert lines == []
    pull("en-de", PullOptions(precision="float32"), home, lines.append)
    assert lines[0].startswith("Mozilla's registry cannot be read, OPUS-MT is used instead: ")


def test_files_that_are_no_model_are_an_error(server: HubServer, home: Home) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json"):
        pull("en-de", PullOptions(registry=f"{server.address}/db/models.json"), home)
    assert home.entries() == []


@pytest.mark.parametrize("is_packed", [False, True])
def test_records_of_remote_settings_are_read(server: HubServer, home: Home, is_packed: bool) -> None:
    records = [
        (packed_record if is_packed else record)(name, kind, version)
        for version in ("1.9", "2.0", "1.10")
        for name, kind in zip(CONTENTS, ("model", "vocab", "lex"), strict=True)
    ]
    records += [record("vocab.ende.spm", "vocab", "3.0"), {"name": "unrelated"}]
    path = "/v1/buckets/main/collections/translations-models/records"
    server.plain_files[path] = json.dumps({"data": records}).encode()
    root = {"capabilities": {"attachments": {"base_url": f"{server.address}/attachments/"}}}
    server.plain_files["/v1/"] = json.dumps(root).encode()
    for name, content in CONTENTS.items():
        server.plain_files[f"/attachments/main-workspace/translations-models/{name}"] = content
        server.plain_files[f"/attachments/main/translations-models-v2/{name}.zst"] = packed(content)
    address = f"{server.address}{path}"
    lines: list[str] = []
    folder = pull("en-de", PullOptions(registry=address, download_only=True), home, lines.append)
    assert lines == ["downloading en-de, tier tiny, version 2.0, licence: MPL-2.0"]
    assert {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "metadata.json"} == CONTENTS


def _mirror() -> dict[str, bytes]:
    """Return the files of a mirror by their paths in its folder: records, and files below them."""
    kinds = zip(CONTENTS, ("model", "vocab", "lex"), strict=True)
    records = [record(name, kind, "1.0") for name, kind in kinds]
    files = {str(each["attachment"]["location"]): CONTENTS[str(each["name"])] for each in records}  # type: ignore[index]
    return {"records.json": json.dumps({"data": records}).encode(), **files}


@pytest.mark.parametrize("address", ["records.json", ""])
def test_a_mirror_may_be_any_folder_of_a_web_server(address: str, server: HubServer, home: Home) -> None:
    for path, content in _mirror().items():
        server.plain_files[f"/some/where/{path}"] = content
    folder = pull("en-de", PullOptions(registry=f"{server.address}/some/where/{address}", download_only=True), home)
    assert {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "metadata.json"} == CONTENTS


@pytest.mark.parametrize("name", ["records.json", "."])
def test_a_registry_may_be_a_file_or_a_folder(name: str, home: Home, tmp_path: Path) -> None:
    root = tmp_path / "a mirror #1"
    for path, content in _mirror().items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    options = PullOptions(registry=str(root / name), download_only=True)
    folder = pull("en-de", options, home)
    assert {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "metadata.json"} == CONTENTS
    (root / "main-workspace" / "translations-models" / "vocab.ende.spm").unlink()
    (folder / "vocab.ende.spm").unlink()
    with pytest.raises(CheckpointError, match=r"vocab\.ende\.spm: No such file or directory; files are next to"):
        pull("en-de", options, home)


def test_a_local_registry_names_no_files_outside_its_folder(home: Home, tmp_path: Path) -> None:
    listed = entry("tiny", folder="../secret")
    (tmp_path / "models.json").write_text(json.dumps({"models": {"en-de": [listed]}}), "utf-8")
    with pytest.raises(CheckpointError, match="the registry names a file outside its folder"):
        pull("en-de", PullOptions(registry=str(tmp_path), download_only=True), home)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"x" * 7000, mtime=0), "its SHA-256 must be"),
        (gzip.compress(b"weights", mtime=0), r"it must have 7000 bytes\. Given: 7"),
        (gzip.compress(bytes(10_000_000), mtime=0), "must contain at most 7000 bytes"),
        (gzip.compress(CONTENTS["model.ende.intgemm.alphas.bin"], mtime=0)[:-9], "is damaged"),
        (b"no gzip", "is damaged"),
    ],
)
def test_a_wrong_file_is_rejected_and_deleted(server: HubServer, home: Home, content: bytes, message: str) -> None:
    server.plain_files["/cdn-of-models/models/tiny/model.ende.intgemm.alphas.bin.gz"] = content
    options = PullOptions(registry=f"{server.address}/db/models.json", tier="tiny", download_only=True)
    with pytest.raises(CheckpointError, match=message):
        pull("en-de", options, home)
    assert not [path for path in home.root.rglob("model.*") if path.is_file()]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("en-fr", {}, r"no model for en-fr\. Available from en: de"),
        ("fr-en", {}, r"no model for fr-en\. No model translates from fr"),
        ("en-de", {"tier": "base"}, r"`tier` must be one of base-memory, tiny for en-de\. Given: base"),
        ("team/model", {}, r"`--registry` needs a language pair"),
        ("en-de", {"registry": "opus-mt", "tier": "tiny"}, "need a language pair and `--registry mozilla`"),
    ],
)
def test_a_wrong_choice_is_an_error_with_the_possible_ones(
    server: HubServer, home: Home, name: str, options: dict[str, str], message: str
) -> None:
    home.root.mkdir()
    with pytest.raises(ValueError, match=message):
        pull(name, PullOptions(**({"registry": f"{server.address}/db/models.json"} | options)), home)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("/db/models.json", b"", "models.json is not JSON: Expecting value"),
        ("/db/models.json", b"[" * 100_000, "models.json is not JSON: maximum recursion depth"),
        ("/v1/records", b'{"data": []}', r"/v1/ must name `capabilities\.attachments\.base_url`"),
    ],
)
def test_a_damaged_registry_is_an_error_with_its_address(
    server: HubServer, home: Home, path: str, content: bytes, message: str
) -> None:
    server.plain_files |= {path: content, "/v1/": b"[]"}
    home.root.mkdir()
    with pytest.raises(CheckpointError, match=message):
        pull("en-de", PullOptions(registry=f"{server.address}{path}"), home)


def test_a_language_of_a_pair_may_have_a_script(server: HubServer, home: Home, student: dict[str, bytes]) -> None:
    listed = json.loads(server.plain_files["/db/models.json"])
    chinese = {**listed["models"]["en-de"][0], "targetLanguage": "zh_hant"}
    server.plain_files["/db/models.json"] = json.dumps(listed | {"models": {"en-zh_hant": [chinese]}}).encode()
    options = PullOptions(registry=f"{server.address}/db/models.json", download_only=True)
    for name in ("en-zh-Hant", "en-zh_hant"):
        assert read_checkpoint(pull(name, options, home)).languages.target == ("zh-Hant",)


@pytest.mark.parametrize(
    "content", ["[" * 200_000, '{"flores": {"bleu": 1' + "0" * 400 + "}}", '{"flores": {"bleu": NaN}}']
)
def test_metadata_of_a_hostile_archive_is_left_out(tmp_path: Path, content: str) -> None:
    (tmp_path / "metadata.json").write_text(content)
    assert read_metadata(tmp_path) == Metadata()


@pytest.mark.parametrize("content", [[], {}, {"data": 3}, {"models": []}, "text", None])
def test_another_content_is_no_registry(content: object) -> None:
    with pytest.raises(CheckpointError, match="the registry must have"):
        parse_registry(content, "")


def test_a_registry_cannot_name_files_outside_the_folder() -> None:
    listed = entry("tiny")
    listed["files"]["model"]["path"] = "models/..gz"  # type: ignore[index]
    with pytest.raises(CheckpointError, match="unusable file name"):
        parse_registry({"models": {"en-de": [listed]}}, "http://h")
    assert not parse_registry({"models": {"en-de": [{"files": {}}, 3, None]}}, "")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("hash", "0" * 63, "unusable SHA-256: '000"),
        ("hash", 5, "unusable SHA-256: 5"),
        ("size", "123", "unusable size: '123'"),
        ("size", -1, "unusable size: -1"),
        ("size", True, "unusable size: True"),
    ],
)
def test_a_check_of_the_registry_is_never_left_out(field: str, value: object, message: str) -> None:
    listed = record("vocab.ende.spm", "vocab", "1.0")
    listed["attachment"][field] = value  # type: ignore[index]
    with pytest.raises(CheckpointError, match=message):
        parse_registry({"data": [listed]}, "http://h")


def test_an_unreleased_model_is_taken_if_there_is_no_other() -> None:
    models = parse_registry({"models": {"en-de": [entry("tiny", release="Nightly")]}}, "http://h")
    assert choose_model(models, "en", "de").tier == "tiny"
    assert models[0].files[0].remote.url == "http://h/models/tiny/model.ende.intgemm.alphas.bin.gz"


ALPHA = "env.channel == 'default' || env.channel == 'nightly'"
DESKTOP, ANDROID = "env.appinfo.OS != 'Android'", "env.appinfo.OS == 'Android'"


@pytest.mark.parametrize(
    ("records", "chosen"),
    [
        ([("3.0", ""), ("3.0a2", "")], "3.0"),
        ([("3.0a2", ""), ("3.0b1", ""), ("3.0a10", "")], "3.0b1"),
        ([("3.9", ""), ("3.10", ""), ("3.10.1a1", "")], "3.10.1a1"),
        ([("3.0", DESKTOP), ("3.1", f"({ALPHA}) && {DESKTOP}")], "3.0"),
        ([("2.0", ANDROID), ("2.1", "env.channel != 'release'")], "2.0"),
        ([("2.0a1", ALPHA), ("", ALPHA)], "2.0a1"),
    ],
)
def test_the_newest_version_that_is_released_somewhere_is_chosen(records: list[tuple[str, str]], chosen: str) -> None:
    listed = [
        record(name, kind, version, filter_expression=expression)
        for version, expression in records
        for name, kind in zip(CONTENTS, ("model", "vocab", "lex"), strict=True)
    ]
    assert choose_model(parse_registry({"data": listed}, "http://h"), "en", "de").version == chosen


@pytest.mark.parametrize(
    ("pair", "listed", "chosen"),
    [
        (("en", "nb"), ["en-no", "en-nn"], "en-no"),
        (("en", "no"), ["en-nn", "en-nb"], "en-nb"),
        (("en", "zh_hant"), ["en-zh", "en-zh_hant"], "en-zh_hant"),
        (("pt", "en"), ["pt_br-en", "pt-en"], "pt-en"),
        (("no", "sv"), ["nb-en", "nn-sv"], "nn-sv"),  # the other has no model into that language
    ],
)
def test_languages_match_as_in_requests(pair: tuple[str, str], listed: list[str], chosen: str) -> None:
    entries = [
        {**entry("tiny"), "sourceLanguage": name.partition("-")[0], "targetLanguage": name.partition("-")[2]}
        for name in listed
    ]
    models = parse_registry({"models": {"all": entries}}, "http://h")
    found = choose_model(models, *pair)
    assert f"{found.source}-{found.target}" == chosen
