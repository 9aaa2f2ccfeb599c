"""What calls may always contain: what was seen in them at least once."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from traincheck_relations.api import Call, Event, Interests
from traincheck_relations.conditions.properties import FORWARD
from traincheck_relations.value import has_changed
from traincheck_relations.variables.change import classes, is_told
from traincheck_relations.variables.observed import ObservedCall, ObservedCalls
from traincheck_trace_schema.invariants import APIParam, Params, VarTypeParam

if TYPE_CHECKING:
    from collections.abc import Iterable

# They run code that they are given: what it calls says nothing about them.
_RUNS_GIVEN_CODE = frozenset(
    {
        "torch.nn.Sequential.forward",
        "torch.nn.DataParallel.forward",
        "torch.nn.parallel.DistributedDataParallel.forward",
        "torch.utils.checkpoint.checkpoint",
        "torch.Tensor.backward",
        "torch.autograd.backward",
        "torch.autograd.grad",
        "torch.GradScaler.step",
    }
)


class ContainProposer:
    """Proposes what was seen at least once: a call inside a call, a change in an observed call."""

    interests = Interests(kinds=frozenset(("call_begin", "observe")))

    def __init__(self) -> None:
        self._calls: set[tuple[str, str]] = set()
        self._overrides: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._changes: set[tuple[str, str, str, str, str]] = set()
        self._observed = ObservedCalls()

    def on_event(self, event: Event) -> None:
        """Take the next event."""
        if event.kind == "observe":
            if (observed := self._observed.on_observe(event)) is not None:
                self._take_changes(observed)
        elif event.call is not None:
            self._take_call(event.call)

    def finish(self) -> Iterable[Params]:
        """Return the candidates, in a fixed order."""
        general = {pair for pair, parents in self._overrides.items() if len(parents) > 1}
        for parent, child in sorted(self._calls | general):
            yield APIParam(api_full_name=parent), APIParam(api_full_name=child)
        for parent, var_type, attribute, pre, post in sorted(self._changes):
            for quantifier in ("each", "some"):
                yield (
                    APIParam(api_full_name=parent),
                    VarTypeParam(
                        var_type=var_type,
                        attr_name=attribute,
                        pre_value=pre,
                        post_value=post,
                        quantifier=quantifier,
                    ),
                )

    def _take_call(self, call: Call) -> None:
        """Take a call and the one it is made in; what that one is made in follows from both.

        A base method says less than its override: it is proposed if two overrides do the same.
        """
        parent = call.parent
        if parent is None or not _RUNS_GIVEN_CODE.isdisjoint(parent.names) or _is_model(parent):
            return
        for child in call.documented:
            if child == parent.function:
                continue  # how deep it goes is up to what it is given
            self._calls.add((parent.function, child))
            for base in parent.documented[1:]:
                if base != FORWARD:  # of every module: what it calls is particular to each
                    self._overrides[base, child].add(parent.function)

    def _take_changes(self, observed: ObservedCall) -> None:
        for before, after in observed.pairs():
            for attribute in observed.attributes:
                if not is_told(before, after, attribute):
                    continue
                pre, post = classes(before, after, attribute)
                if has_changed(before, after, attribute) and (pre != post or pre == "anything"):
                    self._changes.update(
                        (name, after.type, attribute, pre, post)
                        for name in observed.call.documented
                    )


def _is_model(call: Call) -> bool:
    """Whether a call is that of a module which torch does not define: that is architecture."""
    return FORWARD in call.documented and not call.function.startswith("torch.")
