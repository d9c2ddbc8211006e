"""The engine: an error ends the jobs that it is about, and jobs after it run as usual."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import grammarspec as gs

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

from grammarspec.decoding import Generation, Request, Sampling  # noqa: E402
from grammarspec.decoding.model_runner import ModelRunner  # noqa: E402
from grammarspec.decoding.processing import Processing  # noqa: E402
from grammarspec.decoding.running import JoinError, RunningBatch  # noqa: E402
from grammarspec.server.engine import Engine, Job  # noqa: E402

VOCABULARY = gs.Vocabulary.bytes()


class Told:
    """A job, and what it is told."""

    def __init__(self, pattern: str, prompt: bytes = b"ab") -> None:
        self.ends: queue.Queue[Generation | Exception] = queue.Queue()
        self.began: queue.Queue[bytes] = queue.Queue()
        matcher = gs.compile(gs.regex(pattern), VOCABULARY).matcher()
        request = Request(prompt=list(prompt), matcher=matcher, sampling=Sampling(max_tokens=400))
        self.job = Job(request, lambda _, data: self.began.put(data), lambda _, found: self.ends.put(found))

    def end(self) -> Any:
        return self.ends.get(timeout=60)


@pytest.fixture
def engine(tiny_model_directory: Any) -> Iterator[Engine]:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_model_directory, dtype=torch.float32)
    made = Engine(RunningBatch(model, VOCABULARY), 4)
    made.start()
    yield made
    made.close()


def running(engine: Engine) -> Told:
    """A job with a long text, of which some is there."""
    told = Told("[a-z]{300,}")
    engine.submit(told.job)
    told.began.get(timeout=60)
    return told


def works(engine: Engine) -> bool:
    """Whether a new job gets its text."""
    told = Told("yes")
    engine.submit(told.job)
    return bool(told.end().text == "yes")


def once(real: Callable[..., Any], error: Exception, when: Callable[..., bool] = lambda *_: True) -> Any:
    """A function that raises an error the first time that it is called so."""
    left = [error]

    def broken(*arguments: Any) -> Any:
        if left and when(*arguments):
            raise left.pop()
        return real(*arguments)

    return broken


def test_a_batch_that_is_half_joined_ends(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys and values of the rows are there, but not their options: no text may go on with these."""
    first = running(engine)
    monkeypatch.setattr(Processing, "join", once(Processing.join, ValueError("sizes do not match")))
    second = Told("[a-z]{300,}")
    engine.submit(second.job)
    for told in (first, second):
        error = told.end()
        assert isinstance(error, JoinError) and "sizes do not match" in str(error)
        assert isinstance(error.__cause__, ValueError)
        assert told.ends.empty()
    assert works(engine)


@pytest.mark.parametrize("error", [ValueError("no"), torch.OutOfMemoryError("no memory for the prompt")])
def test_a_prompt_that_cannot_be_read_ends_its_job_alone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    first = running(engine)
    reads = lambda _, tokens, keep: len(tokens[0]) > 50  # noqa: E731
    monkeypatch.setattr(ModelRunner, "read", once(ModelRunner.read, error, reads))
    second = Told("yes", b"x" * 100)
    engine.submit(second.job)
    assert second.end() is error
    assert not second.job.joined
    assert isinstance(first.end(), Generation)
    assert works(engine)


def test_an_error_while_texts_are_removed_ends_the_batch(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = running(engine), running(engine)
    monkeypatch.setattr(Processing, "select", once(Processing.select, RuntimeError("no memory")))
    engine.cancel(first.job)
    assert str(second.end()) == "no memory"
    assert first.ends.empty()
    assert works(engine)


def test_a_callback_that_fails_is_logged(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    told = Told("a")
    told.job.on_end = lambda *_: 1 / 0
    engine.submit(told.job)
    assert works(engine)
    assert "the callback of a job has failed" in caplog.text
