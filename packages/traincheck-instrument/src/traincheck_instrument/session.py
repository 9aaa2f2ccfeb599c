"""A recording of this process, from its begin to its end. There is at most one at a time."""

from __future__ import annotations

import os
import time
from multiprocessing import util as multiprocessing_util
from typing import TYPE_CHECKING, Any

from traincheck_instrument.api.installer import ApiInstaller
from traincheck_instrument.current import Current
from traincheck_instrument.identity import Identity
from traincheck_instrument.recorder import Recorder
from traincheck_instrument.sink.shard import Shard, ShardOptions
from traincheck_instrument.step_clock import StepClock
from traincheck_instrument.trackers.variables import ATTRIBUTES
from traincheck_trace_schema import records
from traincheck_trace_schema.plan import Plan, VariablePlan
from traincheck_trace_schema.plan_file import read_plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincheck_instrument.settings import RecordingSettings


class Session:
    """Everything that is at work while this process is recorded."""

    def __init__(self, settings: RecordingSettings) -> None:
        self._settings = settings
        self._identity = Identity()
        self._began = time.monotonic()
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
            _attributes(self._plan),
            wants_contexts=self._plan.functions is None or bool(self._plan.contexts),
        )
        self._api = ApiInstaller(self.recorder, self._plan)

    def install(self) -> None:
        """Put wrappers and trackers in place, all or none."""
        try:
            self._api.install()
            self.recorder.parameters.install()
            self._shard.open()
        except BaseException:
            self.recorder.stop()
            self.uninstall()
            raise

    def uninstall(self) -> None:
        """Take wrappers and trackers away."""
        self._api.uninstall()
        self.recorder.parameters.uninstall()

    def close(self, *, clean: bool) -> None:
        """Write what was recorded; with a footer, if the process comes to a clean end."""
        self.recorder.stop()
        self.uninstall()
        self._shard.close(self._footer if clean else None)

    def _header(self) -> dict[str, Any]:
        settings, plan = self._settings, self._plan
        return {
            "kind": "header",
            "schema": records.SCHEMA,
            "version": records.VERSION,
            "run_id": settings.run_id,
            **self._identity.fields(),
            "tracker": settings.tracker if _attributes(plan) else None,
            "tensor_format": settings.tensor_format,
            "steps_from": settings.steps_from,
            "sampling": {
                "interval": settings.sampling.interval,
                "warm_up": settings.sampling.warm_up,
            },
            "recording": {
                "mode": "full" if plan.functions is None else "plan",
                "plan_id": plan.id,
                "functions": self._api.functions,
                "not_wrapped": self._api.not_wrapped,
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
        }

    def after_fork(self) -> None:
        """Go on as a worker, with a shard of its own; called in the child."""
        self._identity.become_worker()
        self._shard.after_fork()
        self.recorder.after_fork()
        # A worker of multiprocessing ends without atexit.
        multiprocessing_util.register_after_fork(self, Session._close_at_exit)

    def _close_at_exit(self) -> None:
        multiprocessing_util.Finalize(None, self.close, kwargs={"clean": True}, exitpriority=-100)


def _after_fork() -> None:
    if Current.session is not None:
        Current.session.after_fork()


os.register_at_fork(after_in_child=_after_fork)


def begin(settings: RecordingSettings) -> Session:
    """Begin to record this process, as `settings` say; ends a session that is at work."""
    end(clean=True)
    session = Session(settings)
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


def _attributes(plan: Plan) -> tuple[str, ...]:
    return tuple(
        name for entry in plan.variables if entry.role == "parameter" for name in entry.attributes
    )
