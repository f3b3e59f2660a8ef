"""Load on a translation server: `locust -f loadtest/locustfile.py --headless -u 16 -r 16 -t 30s -H http://127.0.0.1:8000`.

The only module of this folder that imports locust, which patches the standard library on import: `loadtest.run`
therefore starts it in a process of its own.
"""

import logging
import sys
import time
from itertools import count
from pathlib import Path

import gevent
from locust import FastHttpUser, events, task
from locust.argument_parser import LocustArgumentParser
from locust.env import Environment
from locust.runners import LocalRunner

# Locust puts the folder of this file on the path; the package is named from the folder above.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from loadtest.native import MAX_ANSWER_SECONDS, PATH, WrongAnswer, read_answer, request_body
from loadtest.records import Outcome, Recorder
from loadtest.report import render, to_json
from loadtest.workload import load_corpus, text_requests

PROGRESS_SECONDS = 5.0
MAX_PAUSE_SECONDS = 5.0  # a rejected user obeys Retry-After up to this long
NO_ANSWER_PAUSE_SECONDS = 0.5  # a server that is gone is not asked a thousand times a second


class LoadTest:
    """One process' load test: its options, its recorder, and what it prints.

    The window opens when all users run and closes when they are told to stop. Users are then left to finish
    what they have sent, and those answers still count in the latencies.
    """

    def __init__(self, environment: Environment) -> None:
        options = environment.parsed_options
        assert options is not None
        self.environment = environment
        self.corpus = load_corpus()
        self.seed = int(options.seed)
        self.beam_share = float(options.beam_share)
        self.source = str(options.source_language)
        self.target = str(options.target_language)
        self.window_seconds = float(options.window_seconds)
        self.summary_file = Path(options.summary_file) if options.summary_file else None
        self.recorder = Recorder()
        self.user_numbers = count()
        self.max_users = 0
        environment.events.test_start.add_listener(self._on_test_start)
        environment.events.spawning_complete.add_listener(self._on_spawning_complete)
        environment.events.test_stopping.add_listener(self._on_test_stopping)
        environment.events.test_stop.add_listener(self._on_test_stop)

    def _on_test_start(self, environment: Environment, **_kwargs: object) -> None:
        self.recorder = Recorder()
        self.user_numbers = count()
        gevent.spawn(self._print_progress, self.recorder)

    def _on_spawning_complete(self, user_count: int, **_kwargs: object) -> None:
        self.max_users = user_count
        # Fired again when somebody changes the number of users by hand: the window starts anew with them.
        self.recorder.opened = time.perf_counter()
        if self.window_seconds > 0:
            gevent.spawn_later(self.window_seconds, self._end)

    def _end(self) -> None:
        if self.environment.runner is not None:
            self.environment.runner.quit()

    def _on_test_stopping(self, environment: Environment, **_kwargs: object) -> None:
        self.recorder.closed = time.perf_counter()

    def _on_test_stop(self, environment: Environment, **_kwargs: object) -> None:
        try:
            summary = self.recorder.summary(self.max_users)
        except ValueError as error:
            print(error, flush=True)
            environment.process_exit_code = 1
            return
        print(render(summary), flush=True)
        if self.summary_file:
            self.summary_file.write_text(to_json(summary), encoding="utf-8")
        environment.process_exit_code = summary.exit_code

    def _print_progress(self, recorder: Recorder) -> None:
        begun = time.perf_counter()
        while recorder.closed is None:
            gevent.sleep(PROGRESS_SECONDS)
            if recorder.closed is None:
                answered = sum(record.outcome is Outcome.ANSWERED for record in recorder.records)
                others = len(recorder.records) - answered
                print(f"{time.perf_counter() - begun:6.0f} s  {answered} answered, {others} not", flush=True)


class TranslationUser(FastHttpUser):
    """Sends one request after the other, each from its own seeded sequence, and waits only when told to."""

    connection_timeout = 10.0
    network_timeout = float(MAX_ANSWER_SECONDS)
    load_test: LoadTest

    def on_start(self) -> None:
        """Gives this user its own sequence of texts: the run's seed and the number of the user determine it."""
        test = self.load_test
        self.requests = text_requests(test.corpus, f"{test.seed}/{next(test.user_numbers)}", test.beam_share)
        self.pause_seconds = 0.0

    def wait_time(self) -> float:
        """Nothing, or what the server asked for when it rejected the last request."""
        return self.pause_seconds

    @task
    def translate(self) -> None:
        """One request, sent, timed, checked and recorded."""
        test, recorder, request = self.load_test, self.load_test.recorder, next(self.requests)
        body = request_body(request, test.source, test.target)
        self.pause_seconds = 0.0
        ticket = recorder.start(time.perf_counter(), request.uses_beam)
        with self.client.post(PATH, json=body, catch_response=True) as response:
            finished = time.perf_counter()
            outcome, target_tokens, reason = Outcome.ANSWERED, 0, ""
            if response.status_code == 200:
                try:
                    target_tokens = read_answer(response.content or b"", request)
                except WrongAnswer as error:
                    outcome, reason = Outcome.FAILED, str(error)
            elif response.status_code == 429:
                outcome = Outcome.REJECTED
                self.pause_seconds = _retry_after_seconds(response.headers.get("Retry-After"))
            elif response.status_code:
                outcome, reason = Outcome.FAILED, f"HTTP {response.status_code}"
            else:
                outcome, reason = Outcome.FAILED, f"no answer: {type(response.error).__name__}"
                self.pause_seconds = NO_ANSWER_PAUSE_SECONDS
            recorder.finish(ticket, finished, outcome, request.num_sentences, target_tokens, reason)
            if outcome is Outcome.ANSWERED:
                response.success()
            else:
                response.failure(reason or str(outcome))


def _retry_after_seconds(header: str | None) -> float:
    try:
        return min(max(float(header or 1), 0.0), MAX_PAUSE_SECONDS)
    except ValueError:  # an HTTP date
        return MAX_PAUSE_SECONDS


def _add_options(parser: LocustArgumentParser) -> None:
    parser.add_argument("--beam-share", type=float, default=0.2, help="share of requests with beam search, 0..1")
    parser.add_argument("--seed", type=int, default=1, help="the same seed sends the same texts in the same order")
    parser.add_argument("--source-language", default="en")
    parser.add_argument("--target-language", default="de")
    parser.add_argument("--window-seconds", type=float, default=0.0, help="end this long after all users run")
    parser.add_argument("--summary-file", default="", help="where to write the totals as JSON")


def _prepare(environment: Environment, **_kwargs: object) -> None:
    if not isinstance(environment.runner, LocalRunner):
        sys.exit(
            "loadtest/locustfile.py keeps its records in one process: run it without --master, --worker, --processes"
        )
    # Without it locust cuts off what is in flight at the end, and the slowest requests are the ones in flight.
    environment.stop_timeout = environment.stop_timeout or MAX_ANSWER_SECONDS
    # Locust's table at the end would be a second set of totals, from other records.
    logging.getLogger("locust.stats_logger").disabled = True
    TranslationUser.load_test = LoadTest(environment)


events.init_command_line_parser.add_listener(_add_options)
events.init.add_listener(_prepare)
