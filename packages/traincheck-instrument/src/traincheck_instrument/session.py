"""A recording of this process, from its begin to its end. There is at most one at a time."""

from __future__ import annotations

import functools
import os
import sys
import time
from multiprocessing import util as multiprocessing_util
from typing import TYPE_CHECKING, Any, Literal

import attrs

from traincheck_instrument.api.choice import Choice
from traincheck_instrument.api.installer import ApiInstaller
from traincheck_instrument.api.observation import phases_of_sampler
from traincheck_instrument.contexts.context_managers import ContextManagers
from traincheck_instrument.current import Current
from traincheck_instrument.gate.checkpoints import Checkpoints
from traincheck_instrument.gate.gate import Gate
from traincheck_instrument.gate.verdicts import Verdicts
from traincheck_instrument.process.failure import Failure
from traincheck_instrument.process.identity import Identity
from traincheck_instrument.process.leaving import Leaving
from traincheck_instrument.process.meshes import Meshes
from traincheck_instrument.program.recursion_limit import RecursionLimit
from traincheck_instrument.recorder.overhead import Budget
from traincheck_instrument.recorder.recorder import Recorder
from traincheck_instrument.sink.shard import Shard, ShardOptions
from traincheck_instrument.steps.model_steps import ModelSteps
from traincheck_instrument.steps.step_clock import StepClock
from traincheck_instrument.trackers.limits import unseen_by
from traincheck_instrument.variables.wanted import ATTRIBUTES, ROLES, Looks, Wanted, wanted_by
from traincheck_trace_schema import records
from traincheck_trace_schema.plan import Plan, VariablePlan
from traincheck_trace_schema.plan_file import read_plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_instrument.settings import Guard, RecordingSettings


class Session:
    """Everything that is at work while this process is recorded."""

    def __init__(self, settings: RecordingSettings, *, is_worker: bool = False) -> None:
        self._settings = settings
        self._steps_from: Literal["source", "hand", "model"] | None = settings.steps_from
        self._identity = Identity()
        if is_worker:
            self._identity.become_worker()
        self._began = time.monotonic()  # later, when it has begun
        self._starting_seconds = 0.0
        self._meshes = Meshes()
        self._recursion_limit = RecursionLimit()
        self._identity.refresh(self._meshes)
        self._plan = _plan(settings)
        sampling = settings.sampling
        clock = StepClock(interval=sampling.interval, warm_up=sampling.warm_up)
        self._shard = Shard(
            settings.output_dir,
            self._header,
            lambda: self._identity.rank,
            ShardOptions(compresses=settings.gzip, max_bytes=settings.max_trace_bytes),
            on_stop=clock.stop,
        )
        self.recorder = Recorder(
            self._shard,
            clock,
            _wanted(self._plan, settings),
            contexts=_contexts(self._plan),
            tracker=settings.tracker,
        )
        self.context_managers = ContextManagers(
            self.recorder.contexts, self.recorder.faults, settings.modules
        )
        self.recorder.calls.with_stacks = settings.with_stacks
        steps = self.recorder.steps
        steps.before_step, steps.tell_header = self._tell_news, self.tell_header
        if sampling.budget is not None:
            steps.budget = Budget(sampling.budget, self.recorder.overhead)
        choice = Choice(
            plan=self._plan,
            modules=settings.modules,
            with_private=settings.with_private,
            with_builtins=settings.with_descriptors,
        )
        self._has_news = False  # for the header
        self._leaving = Leaving(self._shard, self.recorder.faults)
        self._api = ApiInstaller(self.recorder, choice, on_change=self._note_news)
        self._gate = None if settings.guard is None else self._guarded(settings.guard)
        gate, steps.gate = self._gate, None if self._gate is None else self._gate.begin_step
        self._checkpoints = None if gate is None else Checkpoints(lambda: gate.save(clock.step))
        on_first = functools.partial(self._note_steps_from, "model")
        self.model_steps = ModelSteps(self.recorder.steps, self.recorder.faults, on_first)

    def _guarded(self, guard: Guard) -> Gate:
        """Return the gate that steps and checkpoints pass."""
        return Gate(
            guard=guard,
            verdicts=Verdicts(guard.progress, self._settings.run_id),
            shard=self._shard,
            work=self.recorder.work,
            rank=lambda: self._identity.rank,
            close=self._end_trace,
        )

    def install(self) -> None:
        """Put wrappers and trackers in place, all or none."""
        try:
            self._recursion_limit.install()
            self._api.install()
            self.context_managers.install()
            self._meshes.install()
            self.recorder.tracker.install()
            self.recorder.swaps.install()
            self.recorder.registrations.install()
            if self._steps_from is not None:
                self.model_steps.follow_marks()
            if self._steps_from is None or self._settings.watches_evaluation:
                self.model_steps.install()
            if self._checkpoints is not None:
                self._checkpoints.install()  # around what records them
            self._leaving.install()
            if not self._identity.is_worker:  # one that records nothing leaves no file
                self._shard.open()
        except BaseException:
            self.recorder.stop()
            self.uninstall()
            raise
        now = time.monotonic()
        self._starting_seconds, self._began = now - self._began, now

    def uninstall(self) -> None:
        """Take wrappers and trackers away, what came last first: one may stand on another."""
        self._leaving.uninstall()
        if self._checkpoints is not None:
            self._checkpoints.uninstall()
        self.model_steps.uninstall()
        self.recorder.registrations.uninstall()
        self.recorder.swaps.uninstall()
        self.recorder.tracker.uninstall()
        self._meshes.uninstall()
        self.context_managers.uninstall()
        self._api.uninstall()
        self._recursion_limit.uninstall()

    def close(self, *, clean: bool) -> None:
        """Write what was recorded; with a footer, if the process comes to a clean end."""
        self._end_recording(clean=clean)
        if self._gate is not None:
            self._gate.leave()
        self.uninstall()
        self._shard.close(self._footer if clean else None)

    def _end_recording(self, *, clean: bool) -> None:
        if clean:
            self.recorder.steps.end()
        self.recorder.stop()
        if not self._identity.is_worker:
            self._api.tell_news()
            self._tell_what_is_new()

    def _end_trace(self) -> None:
        """Write what was recorded, and the footer, while the program goes on to its end."""
        try:
            self._end_recording(clean=True)
            self._shard.close(self._footer)
        except Exception as error:  # noqa: BLE001  training must not feel our faults
            self.recorder.faults.contain("the end of the trace", error)

    def tell_failure(self, error: BaseException) -> None:
        """Leave behind how the program failed here, if other processes may fail for it."""
        header = self._header()
        if header["world_size"] > 1:
            step = self.recorder.clock.step
            Failure.of(error, header=header, step=step).write(self._settings.output_dir)

    def note_step_mark(self) -> None:
        """Take note that a mark begins a step: from now on no call of a model does."""
        if not self.model_steps.is_at_work:
            return
        try:
            if not self.model_steps.follows_marks:
                if self._settings.watches_evaluation:
                    self.model_steps.follow_marks()
                else:
                    self.model_steps.uninstall()
                self._note_steps_from("source" if Current.marks_steps_in_source else "hand")
            self.model_steps.note_mark()
        except Exception as error:  # noqa: BLE001  training must not feel our faults
            self.recorder.faults.contain("the counting of steps", error)

    def _tell_news(self) -> None:
        """Tell the header again if this process has joined a job, say, or more is recorded."""
        self.recorder.catch_up()
        self._has_news |= self._identity.refresh(self._meshes)
        self._api.tell_news()
        self._tell_what_is_new()

    def _note_news(self) -> None:
        """Take note of a change; the header is long, so all of a step are told at once."""
        self._has_news = True

    def _tell_what_is_new(self) -> None:
        if self._has_news:
            self.tell_header()

    def _note_steps_from(self, origin: Literal["source", "hand", "model"]) -> None:
        self._steps_from = origin
        self._note_news()

    def tell_header(self) -> None:
        """Tell the header again, if it is told: a fact in it has changed."""
        self._has_news = False
        if self._shard.is_open:
            self._shard.append(self._header())

    def _header(self) -> dict[str, Any]:
        settings, plan = self._settings, self._plan
        return {
            "kind": "header",
            "schema": records.SCHEMA,
            "version": records.VERSION,
            "run_id": settings.run_id,
            **self._identity.fields(),
            "tracker": settings.tracker if self.recorder.attributes else None,
            "tensor_format": settings.tensor_format,
            "steps_from": self._steps_from,
            "sampling": attrs.asdict(
                attrs.evolve(settings.sampling, interval=self.recorder.clock.interval)
            ),
            "recording": {
                "mode": "full" if plan.functions is None else "plan",
                "plan_id": plan.id,
                "functions": self._api.functions,
                "not_wrapped": self._api.not_wrapped,
                "not_observed": {**unseen_by(settings.tracker, plan), **self._api.not_observed},
                "attributes": self.recorder.attributes,
                "observed": self._api.observed,
            },
        }

    def _footer(self, counts: Mapping[str, int]) -> dict[str, Any]:
        return {
            "kind": "footer",
            "records": dict(counts),
            "gaps": counts.get("gap", 0),
            "seconds": round(time.monotonic() - self._began, 3),
            "recording_seconds": round(self.recorder.overhead.seconds, 3),
            "starting_seconds": round(self._starting_seconds, 3),
            **self._settled(),
        }

    def _settled(self) -> dict[str, float]:
        """Return what recording took since the interval rose for a budget, if it did."""
        budget = self.recorder.steps.budget
        settled = None if budget is None else budget.since_risen()
        if settled is None:
            return {}
        seconds, recording = settled
        return {
            "settled_seconds": round(seconds, 3),
            "settled_recording_seconds": round(recording, 3),
        }

    def after_fork(self) -> None:
        """Go on as a worker, with a shard of its own; called in the child."""
        self._identity.become_worker()
        self._starting_seconds = 0.0
        self._shard.after_fork()
        self.recorder.after_fork()
        self._close_after_fork()

    def close_with_process(self) -> None:
        """Close when `multiprocessing` ends this process, which it does without `atexit`."""
        self._close_after_fork()
        self._close_at_exit()

    def _close_after_fork(self) -> None:
        # A process that was forked forgets what it is to do at its end when it begins its work.
        multiprocessing_util.register_after_fork(self, Session._close_at_exit)

    def _close_at_exit(self) -> None:
        multiprocessing_util.Finalize(None, self._close_worker, exitpriority=-100)

    def _close_worker(self) -> None:
        # multiprocessing asks for this while an exception that ends the process is on its way.
        # torch.multiprocessing.spawn turns one of the program into a SystemExit.
        # One that ended a process that the program started by itself is told already.
        error = sys.exc_info()[1] or getattr(sys, "last_value", None)
        is_exit = isinstance(error, SystemExit) and error.__context__ is None
        self.close(clean=error is None or is_exit)


def _after_fork() -> None:
    if Current.session is not None:
        Current.session.after_fork()


os.register_at_fork(after_in_child=_after_fork)


def begin(settings: RecordingSettings, *, is_worker: bool = False) -> Session:
    """Begin to record this process, as `settings` say; ends a session that is at work.

    Args:
        settings: How it is recorded.
        is_worker: It was started by a process that is recorded, and is no rank of its own, as far
            as is known.
    """
    end(clean=True)
    session = Session(settings, is_worker=is_worker)
    if is_worker:
        session.close_with_process()
    session.install()
    Current.session = session
    return session


def end(*, clean: bool) -> None:
    """End the recording of this process, if there is one."""
    session, Current.session = Current.session, None
    if session is not None:
        session.close(clean=clean)


def _plan(settings: RecordingSettings) -> Plan:
    """Return the plan of the settings, or the one that records everything public."""
    if settings.plan_path is not None:
        return read_plan(settings.plan_path)
    variables = (VariablePlan(role="parameter", attributes=ATTRIBUTES),)
    return Plan(id="full", functions=None, variables=variables)


def _wanted(plan: Plan, settings: RecordingSettings) -> Wanted:
    """Return what is to be told of variables: of those that nothing tracks, nothing."""
    attributes: Looks = {}
    if settings.tracker is not None:
        of_all = dict.fromkeys(ROLES)
        attributes = wanted_by(plan.variables) if plan.functions is not None else of_all
    return Wanted(
        attributes=attributes,
        tensor_format=settings.tensor_format,
        phases=phases_of_sampler(plan) if settings.tracker == "sampler" else None,
    )


def _contexts(plan: Plan) -> frozenset[str] | None:
    """Return the contexts that are recorded, by the first part of their names; None: all."""
    if plan.functions is None:
        return None
    return frozenset(name.partition(".")[0] for name in plan.contexts)
