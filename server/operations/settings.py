"""Settings of the server: each is a flag of `kvasir serve`, an environment variable and a row of `docs/settings.md`."""

import difflib
import ipaddress
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from server.documents.input.limits import MEGABYTE, FileLimits
from server.documents.isolation.process import ProcessLimits
from server.documents.job_store import StoreOptions
from server.interface.decoding_options import MAX_BEAM_SIZE, KeepOrTranslate, OnLowQuality
from server.memory.store import DEFAULT_MAX_BYTES as DEFAULT_MEMORY_BYTES
from server.memory.store import DEFAULT_MAX_SEGMENTS
from server.operations.cpu_count import usable_cpus
from server.operations.defaults import DEFAULT_MODEL, DEFAULT_PIVOT
from server.translation.glossaries import DEFAULT_MAX_BYTES as DEFAULT_GLOSSARY_BYTES
from server.translation.limits import TranslationLimits
from server.workers.cache import DEFAULT_MAX_BYTES, DEFAULT_MAX_SENTENCES

UNIX_CLIENT: Final = "unix"  # a client of the Unix socket, which has no address


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


ENVIRONMENT_PREFIX = "KVASIR_"
# Read by the packages library and kernels, by `kvasir mcp` and by deploy/ray_serve.py.
_READ_ELSEWHERE = (
    *("HOME", "KERNELS", "MCP_API_KEY", "RAY_CPUS", "RAY_GATEWAYS", "RAY_MAX_ONGOING", "RAY_MAX_REPLICAS"),
    *("RAY_MIN_REPLICAS", "RAY_TARGET_ONGOING", "RAY_THREADS"),
)

ProtocolName = Literal[
    "native",
    "live",
    "libretranslate",
    "deepl",
    "deeplx",
    "extensions",
    "mtranserver",
    "openai",
    "google",
    "apertium",
    "games",
    "microsoft",
]
LogFormat = Literal["auto", "text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]
Device = Literal["cpu", "cuda"]


class Settings(BaseModel):
    """Settings, read once at start-up. A flag overrides its environment variable, which overrides the default.

    The variable of --max-rows is KVASIR_MAX_ROWS. Lists are separated by commas in the environment and given by
    repeating the flag on the command line.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", protected_namespaces=(), validate_default=True, use_attribute_docstrings=True
    )

    model: Annotated[list[Path], Field(min_length=1)] = [DEFAULT_MODEL]
    """bundles to serve: their folders, or folders that contain bundles"""
    pivot: Annotated[str, Field(max_length=64)] = DEFAULT_PIVOT
    """language between two models for pairs without a model of their own; empty disables such pairs"""
    detect_languages: list[str] = []
    """languages considered by detection; unset: the source languages of the models"""
    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """address to listen on"""
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """TCP port to listen on; 0 takes any free one"""
    unix_socket: Path | None = None
    """Unix socket to listen on, instead of host and port, for a proxy on this machine"""
    tls_certificate: Path | None = None
    """PEM file of the certificate chain; turns on HTTPS, and is loaded again when it changes"""
    tls_key: Path | None = None
    """PEM file of the certificate's private key; unset: the file of the certificate"""
    api_keys: Path | None = None
    """SQLite file of API keys, written by `kvasir keys`; unset: requests need no key"""
    require_keys: bool = False
    """reject the start without `api_keys` on an address that other machines reach; set in images"""
    glossary_file: Path | None = None
    """SQLite file of stored glossaries, created if missing; unset: glossaries are lost at shutdown, and are in memory
    or in `documents_folder`"""
    max_glossary_megabytes: Annotated[int, Field(ge=1, le=100_000)] = DEFAULT_GLOSSARY_BYTES // MEGABYTE
    """size of all stored glossaries, and memory for the glossaries of running requests, in megabytes each"""
    memory_file: Path | None = None
    """SQLite file of translation memories, created if missing; unset: the server has none"""
    max_memory_segments: Annotated[int, Field(ge=1, le=100_000_000)] = DEFAULT_MAX_SEGMENTS
    """segments in all translation memories of an API key; more receive 400"""
    max_memory_megabytes: Annotated[int, Field(ge=1, le=100_000)] = DEFAULT_MEMORY_BYTES // MEGABYTE
    """text in all translation memories of an API key, and size of an imported file, in megabytes"""
    device: Device = "cpu"
    """where models run: cpu, or cuda (an NVIDIA GPU; needs the `gpu` extra and float16 bundles)"""
    threads: Annotated[int, Field(ge=1, le=1024)] = usable_cpus()
    """CPU threads of all models together, divided evenly; at least one each"""
    replicas: Annotated[int | None, Field(ge=1, le=1024)] = None
    """engines of each model; unset: one for each thread on cpu, one on cuda"""
    lend_threads: bool = False
    """let a model use the threads of other models while these have no requests, with more engines and copies of its
    weights"""
    memory_limit: Annotated[int | None, Field(ge=1, le=10_000_000)] = None
    """memory of all loaded models in megabytes, as estimated from their files; models beyond it are loaded by their
    next request, in place of idle ones; unset: no limit"""
    model_idle_seconds: Annotated[float | None, Field(gt=0, le=31_536_000)] = None
    """seconds without requests until a model is unloaded; its next request loads it again; unset: never"""
    admin_port: Annotated[int | None, Field(ge=0, le=65535)] = None
    """TCP port for administration: models and load; 0 takes any free one; unset: none"""
    admin_host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """address of the port for administration; others than loopback need keys"""
    admin_socket: Path | None = None
    """Unix socket for administration, instead of a port; unset: none"""
    admin_keys: Path | None = None
    """SQLite file of keys for administration, written by `kvasir keys`; unset: no key is needed on loopback addresses
    and Unix sockets"""
    trace_endpoint: Annotated[str, Field(pattern=r"^(https?://.+)?$")] = ""
    """OTLP endpoint of a collector for traces, such as http://127.0.0.1:4318/v1/traces; needs the `telemetry` extra;
    empty: no traces"""
    trace_percent: Annotated[float, Field(ge=0, le=100)] = 100.0
    """share of requests that are traced, unless their `traceparent` header decides"""
    engine_processes: bool | None = None
    """run engines in processes instead of threads: higher throughput, one copy of the model for each engine; unset:
    true on cpu for models below 256 megabytes"""
    max_rows: Annotated[int, Field(ge=MAX_BEAM_SIZE, le=1024)] = 64
    """sentences (with beam search: beams) that an engine decodes at once"""
    max_waiting_requests: Annotated[int, Field(ge=1, le=1_000_000)] = 2048
    """size of each model's queue, in sentences; requests beyond it receive 429"""
    max_queue_seconds: Annotated[float, Field(gt=0, le=3600)] = 0.1
    """seconds that a sentence may wait in the queue; while waits are longer, requests receive 429"""
    max_encoder_tokens: Annotated[int, Field(ge=16, le=1_000_000)] = 512
    """source tokens that an engine encodes at once; larger values increase throughput and delay the sentences being
    decoded"""
    cache_sentences: Annotated[int, Field(ge=0, le=10_000_000)] = DEFAULT_MAX_SENTENCES
    """size of each model's translation cache, in sentences; 0 disables the cache and the sharing of identical sentences
    in flight"""
    cache_megabytes: Annotated[int, Field(ge=1, le=100_000)] = DEFAULT_MAX_BYTES // MEGABYTE
    """memory of each model's translation cache, in megabytes"""
    max_body_bytes: Annotated[int, Field(ge=1024, le=1_000_000_000)] = 4_000_000
    """size of a request body in bytes; larger ones receive 413"""
    max_text_characters: Annotated[int, Field(ge=1, le=100_000_000)] = 100_000
    """characters of all texts of a request; more receive 422"""
    max_texts: Annotated[int, Field(ge=1, le=1_000_000)] = 1000
    """number of texts in a request; more receive 422"""
    max_beam_size: Annotated[int, Field(ge=1, le=MAX_BEAM_SIZE)] = MAX_BEAM_SIZE
    """largest `beam_size` of a request"""
    default_beam_size: Annotated[int, Field(ge=1, le=MAX_BEAM_SIZE)] = 4
    """`beam_size` of requests without one; 1 is greedy search: faster, less accurate"""
    if_already_target: KeepOrTranslate = "keep"
    """texts that are in the target language already, in requests without this field"""
    repair: bool = True
    """decode sentences again whose translations lack something, where the bundle has repairs, in requests without this
    field"""
    min_quality: Annotated[float | None, Field(ge=0, le=1)] = None
    """quality of a sentence below which `on_low_quality` applies, in requests without this field; for
    calibrated models"""
    on_low_quality: OnLowQuality = "flag"
    """sentences with a quality below `min_quality`, in requests without this field: name them, or keep their source"""
    join_lines: bool = False
    """texts of a request are lines of one text, such as captions, in requests without `context`: those that one
    sentence runs over are translated together"""
    shortlist: bool = True
    """restrict translations of models with a shortlist to the tokens that it has for each sentence, in requests without
    this field: faster"""
    request_timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    """longest time limit of a request, in seconds, and the default; then 504"""
    max_file_megabytes: Annotated[int, Field(ge=1, le=1000)] = 20
    """size of an uploaded document in megabytes; larger ones receive 413"""
    max_uncompressed_megabytes: Annotated[int, Field(ge=1, le=10_000)] = 200
    """size of all files in a document (docx, epub) after unpacking, in megabytes"""
    max_part_megabytes: Annotated[int, Field(ge=1, le=1000)] = 32
    """megabytes of a document parsed at once: a text file, or one XML file of it"""
    document_max_cpu_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    """processor time for reading and writing a document; more gets 422. A small document has less: 10 seconds and 30
    for each megabyte"""
    document_max_memory_megabytes: Annotated[int, Field(ge=64, le=100_000)] = 512
    """memory for reading and writing a document, in a process of its own; more gets 422"""
    max_documents: Annotated[int, Field(ge=1, le=100_000)] = 100
    """documents queued, in progress and stored; finished ones are deleted to make room, then 429"""
    max_client_documents: Annotated[int, Field(ge=1, le=100_000)] = 25
    """documents of one client (API key or address) queued and in progress; more receive 429"""
    max_documents_megabytes: Annotated[int, Field(ge=1, le=10_000_000)] = 2000
    """size of the files of all documents, uploads included, in megabytes"""
    max_running_documents: Annotated[int, Field(ge=1, le=64)] = 2
    """documents translated at once; as many again while these are being read for long"""
    document_lifetime_seconds: Annotated[float, Field(gt=0, le=604_800)] = 3600.0
    """seconds until a translated document is deleted"""
    documents_folder: Path | None = None
    """folder of uploaded and translated documents; unset: the system's temporary folder"""
    max_live_sessions: Annotated[int, Field(ge=1, le=100_000)] = 200
    """sessions of live translation, half of them of one client (API key or address); more receive 429"""
    live_idle_seconds: Annotated[float, Field(gt=0, le=604_800)] = 300.0
    """seconds without input until a live session ends"""
    max_unread_megabytes: Annotated[int, Field(ge=1, le=100_000)] = 256
    """memory for responses not read yet, and again for bodies of running requests, in megabytes; then 429"""
    header_timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 10.0
    """seconds for the headers of a request; then 408"""
    body_timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 30.0
    """seconds to receive a body, plus one for every 10 kB of it; then 408"""
    write_timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 30.0
    """seconds without progress of a response until its connection is closed"""
    drain_timeout_seconds: Annotated[float, Field(ge=0, le=3600)] = 25.0
    """seconds for running requests and documents to finish after SIGTERM; the default is shorter than the 30 seconds
    that Kubernetes waits"""
    heartbeat_limit_seconds: Annotated[float, Field(ge=2, le=3600)] = 30.0
    """seconds without an engine heartbeat until the engine's process is killed and started again, and /health/live and
    /health/ready return 503"""
    protocols: Annotated[list[ProtocolName], Field(min_length=1)] = list(get_args(ProtocolName))
    """HTTP protocols to serve; the page belongs to native"""
    log_level: LogLevel = "info"
    """minimum level of log lines: debug, info, warning, error"""
    log_format: LogFormat = "auto"
    """format of log lines: text, json, or auto: text on a terminal, else json"""
    allowed_hosts: list[str] = []
    """host names of the server, besides localhost and IP addresses; * is any; unset: any, but none on a loopback
    address"""
    trusted_proxies: list[str] = []
    """IP addresses and networks of proxies whose X-Forwarded-For and X-Forwarded-Proto name the client and its scheme;
    unix is any on the Unix socket; unset: the headers are ignored"""
    cors_origins: list[str] = []
    """origins of other web pages and browser extensions that may call the API; * is any, moz-extension://* any
    extension of Firefox; unset: none"""

    @model_validator(mode="before")
    @classmethod
    def _add_environment(cls, given: dict[str, object]) -> dict[str, object]:
        variables = {name.upper().removeprefix(ENVIRONMENT_PREFIX): value for name, value in os.environ.items()}
        return {name: variables[name.upper()] for name in cls.model_fields if name.upper() in variables} | given

    @field_validator(
        *("model", "allowed_hosts", "trusted_proxies", "cors_origins", "detect_languages", "protocols"), mode="before"
    )
    @classmethod
    def _split_commas(cls, value: object) -> object:
        return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value

    @field_validator("trusted_proxies")
    @classmethod
    def _check_networks(cls, value: list[str]) -> list[str]:
        for each in value:
            try:
                ipaddress.ip_network("::" if each == UNIX_CLIENT else each)
            except ValueError:
                message = f"must be IP addresses, networks such as 10.0.0.0/8, or unix. Given: {each}"
                raise ValueError(message) from None
        return value

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        if self.tls_key is not None and self.tls_certificate is None:
            raise ValueError("`tls_key` needs `tls_certificate`")
        if self.replicas is not None and self.replicas > self.threads:
            raise ValueError(f"`replicas` must be at most `threads` ({self.threads}). Given: {self.replicas}")
        if self.engine_processes and self.device != "cpu":
            raise ValueError(f"`engine_processes` must be false with device {self.device}")
        if self.lend_threads and (self.replicas is not None or self.device != "cpu"):
            raise ValueError("`lend_threads` needs device cpu, and `replicas` unset")
        if self.require_keys and self.api_keys is None and self.unix_socket is None and not is_loopback(self.host):
            raise ValueError(
                f"`api_keys` is required on an address that other machines reach; set it, or `require_keys` to false. "
                f"Given: {self.host}"
            )
        if self.admin_port is not None and self.admin_socket is not None:
            raise ValueError("`admin_port` and `admin_socket` exclude each other; set one")
        if self.admin_port is not None and self.admin_keys is None and not is_loopback(self.admin_host):
            raise ValueError(f"`admin_host` must be a loopback address without `admin_keys`. Given: {self.admin_host}")
        if self.default_beam_size > self.max_beam_size:
            raise ValueError(
                f"`default_beam_size` must be at most {self.max_beam_size}. Given: {self.default_beam_size}"
            )
        return self

    def shares(self, num_models: int) -> tuple[int, int]:
        """Return the engines of each model and the CPU threads of each engine. Quotients are rounded up."""
        threads = -(-self.threads // num_models)
        replicas = min(self.replicas or (threads if self.device == "cpu" else 1), threads)
        return replicas, threads // replicas

    def num_lent_replicas(self, num_models: int) -> int:
        """Return the engines of each model that decode only while other models have no requests."""
        return self.threads - self.shares(num_models)[0] if self.lend_threads else 0

    @property
    def limits(self) -> TranslationLimits:
        """Limits of one request."""
        return TranslationLimits(
            max_texts=self.max_texts,
            max_text_characters=self.max_text_characters,
            max_beam_size=self.max_beam_size,
            default_beam_size=self.default_beam_size,
            max_timeout_seconds=self.request_timeout_seconds,
            if_already_target=self.if_already_target,
            joins_lines=self.join_lines,
            repair=self.repair,
            min_quality=self.min_quality,
            on_low_quality=self.on_low_quality,
            shortlist=self.shortlist,
        )

    @property
    def document_options(self) -> StoreOptions:
        """Number, size and lifetime of documents."""
        limits = FileLimits(
            max_file_bytes=self.max_file_megabytes * MEGABYTE,
            max_uncompressed_bytes=self.max_uncompressed_megabytes * MEGABYTE,
            max_part_bytes=self.max_part_megabytes * MEGABYTE,
        )
        return StoreOptions(
            limits=limits,
            process_limits=ProcessLimits(self.document_max_cpu_seconds, self.document_max_memory_megabytes * MEGABYTE),
            max_documents=self.max_documents,
            max_of_client=self.max_client_documents,
            max_bytes=self.max_documents_megabytes * MEGABYTE,
            max_running=self.max_running_documents,
            lifetime_seconds=self.document_lifetime_seconds,
            folder=self.documents_folder,
        )


for _field in Settings.model_fields.values():
    _field.description = " ".join((_field.description or "").split())  # lines of help pages and tables break elsewhere


def unknown_variables(environment: Iterable[str]) -> dict[str, str | None]:
    """Return variables with the prefix that are not settings, each with the most similar setting's variable or None."""
    known = [*(name.upper() for name in Settings.model_fields), *_READ_ELSEWHERE]
    named = {name: name.upper().removeprefix(ENVIRONMENT_PREFIX) for name in sorted(environment)}
    unknown = {name: end for name, end in named.items() if end != name.upper() and end not in known}
    return {
        name: next((ENVIRONMENT_PREFIX + near for near in difflib.get_close_matches(end, known, 1)), None)
        for name, end in unknown.items()
    }
