"""The thread that runs the model: it takes jobs, and calls back with pieces of texts and with finished texts.

The thread runs one batch. Between two rounds it removes the texts of cancelled jobs, and adds waiting jobs in the order
of their arrival, as many as there is room for. No other thread uses the model, so no lock is held while the model runs.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grammarspec.decoding import Generation, Request
from grammarspec.decoding.running import JoinError, RunningBatch
from grammarspec.errors import Cancelled, GrammarspecError

if TYPE_CHECKING:
    from grammarspec.decoding.sequence_state import SequenceState

__all__ = ["Engine", "Job"]

_LOG = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class Job:
    """A request for the decoding loop, with two callbacks, which are called in the engine's thread.

    Attributes:
        request: what to generate.
        on_text: called with the number of a sample and the next bytes of its text.
        on_end: called with the number of a sample that has ended and its generation; or with 0 and an error that has
            ended the whole job. Not called any more after the job was cancelled.
        cancelled: whether the job was cancelled.
        joined: whether its texts have joined the batch; it stays true when they have ended.
    """

    request: Request
    on_text: Callable[[int, bytes], None]
    on_end: Callable[[int, Generation | Exception], None]
    cancelled: bool = False
    joined: bool = False
    _texts: list[SequenceState] = field(default_factory=list)


class Engine:
    """Generates the texts of jobs, in a thread of its own.

    Args:
        batch: the batch that jobs join; from now on, only the engine's thread may use it.
        max_texts: the largest number of texts in the batch.
    """

    def __init__(self, batch: RunningBatch, max_texts: int) -> None:
        self._batch, self._max_texts = batch, max_texts
        self._changed = threading.Condition()
        self._waiting: deque[Job] = deque()
        self._jobs: dict[int, Job] = {}  # by the identity of their texts
        self._left: list[Job] = []
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="grammarspec-engine", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def running(self) -> int:
        """The number of texts in the batch."""
        return len(self._jobs)

    @property
    def alive(self) -> bool:
        """Whether the engine accepts jobs."""
        return self._thread.is_alive() and not self._closing

    def submit(self, job: Job) -> None:
        """Add a job to the queue; it joins the batch as soon as there is room.

        Raises:
            RuntimeError: the engine was closed.
            ValueError: the job has more texts than the batch may have.
        """
        if job.request.n > self._max_texts:
            raise ValueError(
                f"the request asks for {job.request.n} texts, but the batch has room for {self._max_texts}"
            )
        with self._changed:
            if not self.alive:
                raise RuntimeError("the engine is closed")
            self._waiting.append(job)
            self._changed.notify()

    def cancel(self, job: Job) -> None:
        """Cancel a job: it leaves the queue, or, at the end of the current round, the batch."""
        with self._changed:
            job.cancelled = True
            if job in self._waiting:
                self._waiting.remove(job)
            else:
                self._left.append(job)
            self._changed.notify()

    def close(self) -> None:
        """End all jobs with :class:`~grammarspec.errors.Cancelled`, and wait for the thread to end."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join()

    # ------------------------------------------------------------------ in the thread
    def _run(self) -> None:
        while True:
            with self._changed:
                while not (self._closing or self._waiting or self._left or self._jobs):
                    self._changed.wait()
                if self._closing:
                    break
                left, self._left = self._left, []
            try:
                for job in left:
                    self._end_texts(job)
                self._admit()
                ended = self._batch.round()
            except Exception as error:
                _LOG.exception("the batch has failed, and all of its texts end")
                self._give_up(error)
                continue
            for text in ended:
                job = self._jobs.pop(id(text))
                self._tell(job, text.sample, text.result())
        self._give_up(Cancelled("the server is shutting down"))
        with self._changed:
            rest = list(self._waiting)
            self._waiting.clear()
        for job in rest:
            self._tell(job, 0, Cancelled("the server is shutting down"))

    def _admit(self) -> None:
        """Add waiting jobs to the batch while there is room, in the order of their arrival.

        Raises:
            JoinError: a job could not be joined to the running texts. The job was told; the batch must be dropped.
        """
        while True:
            with self._changed:
                if not self._waiting or len(self._jobs) + self._waiting[0].request.n > self._max_texts:
                    return
                job = self._waiting.popleft()
            try:
                texts = self._batch.add(job.request, job.on_text)
            except JoinError as error:
                self._tell(job, 0, error)
                raise
            except Exception as error:  # the batch has not changed
                if not isinstance(error, GrammarspecError):
                    _LOG.exception("a request has failed before it joined the batch")
                self._tell(job, 0, error)
                continue
            job._texts, job.joined = texts, True
            self._jobs.update((id(text), job) for text in texts)

    def _end_texts(self, job: Job) -> None:
        """Remove the texts of a job from the batch."""
        for text in job._texts:
            self._jobs.pop(id(text), None)
        self._batch.end(job._texts, Cancelled("the request was cancelled"))

    def _give_up(self, error: Exception) -> None:
        """End all jobs of the batch with an error."""
        self._batch.drop()
        jobs, self._jobs = {id(job): job for job in self._jobs.values()}, {}
        for job in jobs.values():
            self._tell(job, 0, error)

    def _tell(self, job: Job, sample: int, found: Generation | Exception) -> None:
        if job.cancelled:
            return
        try:
            job.on_end(sample, found)
        except Exception:
            _LOG.exception("the callback of a job has failed")
