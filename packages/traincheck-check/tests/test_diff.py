"""Where two runs part: small traces that differ in one thing."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincheck_check.comparing.choice import Choice
from traincheck_check.comparing.comparison import compare
from traincheck_check.comparing.result import KINDS
from traincheck_check.comparing.values import Tolerance
from traincheck_check.comparing.variables import Variables
from traincheck_relations.testing.traces import TraceBuilder, optimizer, tensor
from traincheck_trace_schema.reading import open_run
from traincheck_trace_schema.window import BEFORE_FIRST_STEP

SGD = "torch.optim.SGD.step"
CLEAR = "torch.optim.Optimizer.zero_grad"
BACKWARD = "torch.Tensor.backward"
FORWARD = "__main__.Net.forward"
LAYERS = ("model.first.weight", "model.last.weight")


@attrs.define
class Program:
    """A training program, and what is wrong with it."""

    steps: int = 4
    lr: float = 0.1
    batches: str = "abcdefgh"
    start: str = "start"
    frozen: tuple[str, ...] = ()
    keeps_gradients_in: int | None = None
    evaluates_after: tuple[int, ...] = ()
    layers: tuple[str, ...] = LAYERS
    sampled: int = 1  # each n-th step is recorded
    first_line: int = 10
    source: str = "train.py"

    def record(self, rank):
        """Write what a recorder would, of all steps or of those that are sampled."""
        lines = {
            name: rank.source(self.source, self.first_line + at)
            for at, name in enumerate((CLEAR, FORWARD, BACKWARD, SGD))
        }
        state = {name: {"data": self.start, "grad": None} for name in self.layers}
        rank.function(SGD, "torch.optim.Optimizer.step")
        with rank.call("torch.optim.SGD.__init__", {"lr": self.lr}, src=lines[SGD]):
            pass
        variables = {
            name: rank.variable(
                name,
                held_by=("optimizer0",),
                data=tensor(self.start),
                grad=None,
                requires_grad=name not in self.frozen,
            )
            for name in self.layers
        }
        rank.variable("optimizer0.group0", role="optimizer", type_="torch.optim.SGD", lr=self.lr)
        rank.stage("training")
        for step in range(self.steps):
            is_sampled = step % self.sampled == 0
            rank.step(step)
            rank.records[-1]["sampled"] = is_sampled
            if is_sampled and self.sampled > 1 and step:
                for name, each in variables.items():
                    rank.change(
                        each, data=tensor(state[name]["data"]), grad=_grad(state[name]["grad"])
                    )
                    rank.records[-1]["event"] = "baseline"
            self._step(rank, step, lines, variables, state, is_sampled=is_sampled)
            if step in self.evaluates_after:
                rank.eval_step(0)
                with rank.call(FORWARD, {"x": tensor("test")}, src=lines[FORWARD]):
                    pass
                rank.stage("training")

    def _step(self, rank, step, lines, variables, state, *, is_sampled):  # noqa: PLR0913  a step
        moving = [name for name in self.layers if name not in self.frozen]
        keeps = step == self.keeps_gradients_in
        before = state[moving[0]]["grad"] if keeps else ""
        grads = {
            name: f"g{step}{self.batches[step]}{state[name]['data']}{before}" for name in moving
        }
        for name, grad in grads.items():
            state[name].update(grad=grad, data=f"d{step}{grad}{self.lr}"[:400])
        if not is_sampled:
            return
        if not keeps:
            self._watched(rank, CLEAR, lines, variables, {name: {"grad": None} for name in moving})
        batch = self.batches[step]
        with (
            rank.call(FORWARD, {"x": tensor(batch)}, src=lines[FORWARD]),
            rank.call("torch.relu", {"x": tensor(f"h{batch}")}),
        ):
            pass
        self._watched(
            rank,
            BACKWARD,
            lines,
            variables,
            {name: {"grad": tensor(grad)} for name, grad in grads.items()},
        )
        moved = {name: {"data": tensor(state[name]["data"])} for name in moving}
        self._watched(rank, SGD, lines, variables, moved)
        rank.observe("step_end")

    def _watched(self, rank, function, lines, variables, changes):
        looked_at = ("grad", "requires_grad", *["data"] * (function != CLEAR))
        with rank.call(function, of=optimizer("optimizer0"), src=lines[function]) as call:
            rank.observe("begin", call, function, attributes=looked_at)
            for name, attributes in changes.items():
                rank.change(variables[name], during=call, **attributes)
            rank.observe("end", call, function, attributes=looked_at)


class Waiting:
    """A process that only waits for others."""

    def record(self, rank):
        rank.stage("init")


def _grad(content):
    return None if content is None else tensor(content)


@pytest.fixture
def runs(tmp_path):
    """Return a function that writes the traces of programs and compares them."""

    def run(  # noqa: PLR0913  each is a way in which runs differ
        a, b, *, complete=(True, True), headers=({}, {}), choice=None, edit=None
    ):
        for name, program, is_complete, header in zip("ab", (a, b), complete, headers, strict=True):
            trace = TraceBuilder(tmp_path / name, run_id=name)
            shard = trace.rank()
            shard.records[0].update(header)
            program.record(shard)
            if name == "b" and edit is not None:
                edit(shard)
            trace.write(complete=is_complete)
        return between(tmp_path, choice)

    return run


def between(folder, choice=None):
    return compare(open_run(folder / "a"), open_run(folder / "b"), ("a", "b"), choice)


def kinds(comparison):
    return [each.kind for each in comparison.divergences]


def first(comparison, kind=None):
    found = [each for each in comparison.divergences if kind in (None, each.kind)]
    assert found, comparison.summary
    return found[0]


def test_a_run_is_the_same_as_itself(runs):
    """How much was compared is told with it."""
    comparison = runs(Program(), Program(first_line=99, source="other.py"))

    assert comparison.verdict == "same"
    assert comparison.summary == "The same for all 4 steps that both recorded"
    assert (comparison.steps, comparison.ranks[0].variables) == (4, 3)
    assert comparison.is_complete


def test_other_data_is_found_in_its_step_before_what_follows_from_it(runs):
    """The argument is the cause; gradients and parameters follow, each where it first differs."""
    comparison = runs(Program(), Program(batches="abXdefgh"))

    assert kinds(comparison) == ["arguments", "gradients", "parameters"]
    assert {each.step for each in comparison.divergences} == {2}
    assert first(comparison).what == f"{FORWARD} is called with other content of x"
    assert "order of the samples" in first(comparison).likely
    assert not first(comparison, "gradients").likely
    assert first(comparison, "parameters").names == LAYERS
    assert (first(comparison, "parameters").steps, first(comparison).steps) == (2, 1)


def test_another_learning_rate_is_told_where_it_is_set(runs):
    """As the argument and as the optimizer's setting, with the size."""
    comparison = runs(Program(), Program(lr=0.2))

    assert kinds(comparison) == ["arguments", "settings", "parameters", "gradients"]
    assert comparison.summary == (
        "They part before the first step on rank 0: "
        "torch.optim.SGD.__init__ is called with lr = 0.1 in A and 0.2 in B"
    )
    assert first(comparison).size == "by 0.1"
    assert first(comparison, "settings").what == "lr of optimizer0.group0 is 0.1 in A and 0.2 in B"


def test_a_parameter_that_begins_otherwise_is_named(runs):
    """Before the first step, with how many there are."""

    def edit(shard):
        for record in shard.records:
            if record.get("event") == "appeared" and record["names"] == [LAYERS[1]]:
                record["attributes"]["data"] = tensor("other")

    comparison = runs(Program(), Program(), edit=edit)

    assert comparison.summary.startswith(
        f"They part before the first step on rank 0: {LAYERS[1]} differs before the first step"
    )
    assert (first(comparison).count, first(comparison).of) == (1, 2)
    assert "other weights" in first(comparison).likely


def test_a_frozen_layer_is_told_by_its_flag_and_by_what_does_not_change(runs):
    """The flag first; then that one run changes what the other leaves."""
    comparison = runs(Program(), Program(frozen=LAYERS[:1]))

    assert kinds(comparison) == ["settings", "gradients", "parameters"]
    assert first(comparison).what == f"requires_grad of {LAYERS[0]} is True in A and False in B"
    assert first(comparison, "gradients").what.startswith(f"B has no gradient of {LAYERS[0]}")
    assert first(comparison, "parameters").what == (
        f"{LAYERS[0]} differs after {SGD}: A changes it, B does not"
    )


def test_gradients_that_are_not_cleared_are_told_by_the_missing_call(runs):
    """With the lines of both, and that the gradients are kept."""
    comparison = runs(Program(), Program(keeps_gradients_in=2))

    found = first(comparison)
    assert (found.kind, found.step) == ("calls", 2)
    assert found.what == f"A calls {CLEAR}, B does not (it goes on with {FORWARD})"
    assert (found.source_a, found.source_b) == ("train.py:10", "train.py:11")
    assert "add up" in found.likely
    assert first(comparison, "gradients").what == (
        f"A clears the gradient of {', '.join(LAYERS)}, B keeps that of step 1"
    )


def test_how_it_spreads_is_told_by_step(runs):
    """Steps that are alike are told together."""
    comparison = runs(Program(steps=6), Program(steps=6, batches="abcXefgh"))

    spread = [
        (each.first_step, each.last_step, each.parameters, each.gradients)
        for each in comparison.ranks[0].spread
    ]
    assert spread == [(-1, 2, 0, 0), (3, 3, 2, 2), (4, 5, 2, 2)]


def test_a_call_inside_another_is_told_with_what_it_lies_in(runs):
    """An additional call puts nothing else out of step."""

    def edit(shard):
        at = [
            index
            for index, each in enumerate(shard.records)
            if each.get("function") == "torch.relu"
        ][4]
        begin = shard.records[at]
        call = {**begin, "id": 900, "function": "torch.dropout"}
        end = {**begin, "kind": "call_end", "id": 900, "function": "torch.dropout"}
        shard.records[at:at] = [call, end]

    comparison = runs(Program(), Program(), edit=edit)

    assert kinds(comparison) == ["calls"]
    assert (first(comparison).step, first(comparison).within) == (2, (FORWARD,))
    assert first(comparison).what.startswith(f"B calls torch.dropout in {FORWARD}, A does not")


def test_calls_in_another_order_are_told_as_such(runs):
    """The same calls; so none is said to be missing."""

    def edit(shard):
        records = shard.records
        of_step = [at for at, each in enumerate(records) if each.get("step") == 1]
        functions = {at: records[at].get("function") for at in of_step}
        cleared = [at for at in of_step if functions[at] == CLEAR]
        ran = [at for at in of_step if functions[at] in (FORWARD, "torch.relu")]
        clear = records[cleared[0] : cleared[-1] + 1]
        run = records[ran[0] : ran[-1] + 1]
        records[cleared[0] : ran[-1] + 1] = [*run, *clear]

    comparison = runs(Program(), Program(), edit=edit)

    assert first(comparison).kind == "calls"
    assert first(comparison).what.startswith("Calls come in another order")


def test_an_argument_at_its_default_is_the_same_as_one_that_is_left_out(tmp_path):
    """Only what the call does counts."""
    for name, args in (("a", {"x": 1}), ("b", {"x": 1, "p": 0.5})):
        trace = TraceBuilder(tmp_path / name, run_id=name)
        shard = trace.rank()
        shard.function("f", parameters=("x", "p"), defaults={"p": 0.5})
        shard.step(0)
        with shard.call("f", args):
            pass
        trace.write()

    assert between(tmp_path).verdict == "same"


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        (
            {"of": {"object": {"type": "X", "attributes": {"training": False}}}},
            "f is called with the object.training = True in A and False in B",
        ),
        (
            {"ctx": {"autocast.dtype": {"dtype": "bfloat16"}}},
            "f is called with context autocast.dtype = None in A and bfloat16 in B",
        ),
        ({"raises": "ValueError"}, "f returns in A and raises ValueError in B"),
        ({"args": {"x": 1, "y": 2}}, "f is called with y = left out in A and 2 in B"),
    ],
)
def test_what_else_differs_between_calls_is_told(tmp_path, fields, what):
    """The object, the context, how it ends, and what is passed."""
    usual = {"of": {"object": {"type": "X", "attributes": {"training": True}}}, "args": {"x": 1}}
    for name, own in (("a", {}), ("b", fields)):
        trace = TraceBuilder(tmp_path / name, run_id=name)
        shard = trace.rank()
        shard.step(0)
        with shard.call("f", **{**usual, **own}):
            pass
        trace.write()

    assert first(between(tmp_path)).what == what


def test_runs_that_record_other_steps_are_compared_in_those_that_both_have(runs):
    """That they part in a step that was not recorded is told when recording resumes."""
    headers = ({"sampling": {"interval": 3}}, {"sampling": {"interval": 1}})
    same = runs(Program(steps=7, sampled=3), Program(steps=7), headers=headers)

    assert same.summary == "The same for all 3 steps that both recorded"
    assert same.notes == (
        "A recorded every 3 steps and B every step; only steps that both recorded are compared",
    )

    other = runs(Program(steps=7, sampled=3), Program(steps=7, batches="aXcdefgh"), headers=headers)
    assert (first(other).kind, first(other).step) == ("parameters", 3)
    assert "parted in a step that was not recorded" in first(other).what
    assert (first(other).steps, first(other).last_step) == (2, 6)
    assert [each.steps for each in other.ranks[0].spread if each.parameters] == [2]


def test_evaluation_in_one_run_only_is_told(runs):
    """As calls that the other does not make, where it recorded the step."""
    comparison = runs(Program(evaluates_after=(1, 3)), Program(evaluates_after=(3,)))

    assert kinds(comparison) == ["calls"]
    assert first(comparison).what == f"A evaluates in step 1, B does not: pass 1, {FORWARD}"


def test_passes_of_evaluation_are_compared_by_window(runs):
    """The pass and its step are told."""

    def edit(shard):
        begins = [each for each in shard.records if each["kind"] == "call_begin"]
        found = next(each for each in begins if each.get("eval_pass"))
        found["args"] = {"x": tensor("other")}

    both = Program(evaluates_after=(1,))
    comparison = runs(both, both, edit=edit)

    found = first(comparison)
    assert (found.step, found.eval_pass, found.eval_step) == (1, 1, 0)
    assert "in step 1 (step 0 of evaluation pass 1)" in comparison.summary


def test_one_run_that_goes_on_is_told_and_can_be_left_out(runs):
    """What the shorter does after its loop is no difference in the steps that both have."""
    short, long = Program(steps=3, evaluates_after=(2,)), Program(steps=5)
    comparison = runs(short, long)

    assert first(comparison).what == "A ends after step 2, B goes on to step 4"
    ignoring = Choice(kinds=[kind for kind in KINDS if kind != "steps"])
    assert runs(short, long, choice=ignoring).verdict == "same"
    assert runs(short, long, choice=Choice(last_step=1)).verdict == "same"


def test_a_run_that_was_cut_is_incomplete_and_no_difference(runs):
    """What it did not come to is not held against it."""
    comparison = runs(Program(steps=5), Program(steps=3), complete=(True, False))

    assert comparison.verdict == "same"
    assert not comparison.is_complete
    assert comparison.summary.endswith("but a trace is incomplete")


def test_functions_that_one_run_does_not_record_are_left_out(runs):
    """Against a plan, only what it names is compared, and that is told."""

    def edit(shard):
        dropped = {
            each["id"]
            for each in shard.records
            if each.get("function") == "torch.relu" and "id" in each
        }
        shard.records[1:] = [
            each
            for each in shard.records[1:]
            if not (each.get("id") in dropped and "call" in each["kind"])
        ]

    plan = {
        "mode": "plan",
        "plan_id": "p",
        "functions": [SGD, CLEAR, BACKWARD, FORWARD, "torch.optim.SGD.__init__"],
        "observed": [SGD, CLEAR, BACKWARD],
    }
    comparison = runs(Program(), Program(), headers=({}, {"recording": plan}), edit=edit)

    assert comparison.verdict == "same"
    assert any("torch.relu" in note for note in comparison.notes)
    assert any("by collecting everything and B by a plan" in note for note in comparison.notes)


def test_variables_that_only_one_run_has_are_counted_and_named(runs):
    """Those that both have are compared."""
    comparison = runs(Program(), Program(layers=(*LAYERS, "model.extra.weight")))

    found = first(comparison, "parameters")
    assert found.what == "B has 1 parameter that A has not (model.extra.weight)"


def test_nothing_in_common_is_not_compared(tmp_path):
    """Other ranks, say."""
    for name, rank in (("a", 0), ("b", 1)):
        trace = TraceBuilder(tmp_path / name, run_id=name, world_size=2)
        Program().record(trace.rank(rank))
        trace.write()

    comparison = between(tmp_path)

    assert comparison.verdict == "not compared"
    assert comparison.notes == ("A has rank 0, B has rank 1; compared: no rank",)


def test_each_rank_is_compared_with_its_own(tmp_path):
    """The rank that parts first is told; what others follow with is told of them."""
    for name, other in (("a", Program()), ("b", Program(batches="abXdefgh"))):
        trace = TraceBuilder(tmp_path / name, run_id=name, world_size=2)
        Program().record(trace.rank(0))
        other.record(trace.rank(1))
        trace.write()

    comparison = between(tmp_path)

    assert comparison.summary.startswith("They part in step 2 on rank 1: ")
    assert [len(each.divergences) > 0 for each in comparison.ranks] == [False, True]
    assert between(tmp_path, Choice(ranks=[0])).verdict == "same"


def test_ranks_that_part_alike_are_told_together(tmp_path):
    """One cause, one line."""
    for name, program in (("a", Program()), ("b", Program(lr=0.3))):
        trace = TraceBuilder(tmp_path / name, run_id=name, world_size=2)
        program.record(trace.rank(0))
        program.record(trace.rank(1))
        trace.write()

    assert between(tmp_path).summary.startswith("They part before the first step on ranks 0, 1: ")


def test_records_that_were_lost_make_no_difference(runs):
    """The window is passed over, and variables are compared once they are told anew."""

    def edit(shard):
        at = next(
            index
            for index, each in enumerate(shard.records)
            if each.get("function") == FORWARD and each["step"] == 1
        )
        del shard.records[at : at + 6]
        gap = {"kind": "gap", "thread": 0, "seq": at, "step": 1, "reason": "queue", "count": 6}
        shard.records.insert(at, gap)

    comparison = runs(Program(), Program(), edit=edit)

    assert (comparison.verdict, comparison.steps) == ("same", 3)
    assert not comparison.is_complete


def test_calls_of_other_threads_are_left_out_and_told(runs):
    """They come at any time, unless the training thread waits for them."""

    def edit(shard):
        at = next(
            index for index, each in enumerate(shard.records) if each.get("function") == CLEAR
        )
        begin = {
            **shard.records[at],
            "id": 901,
            "thread": 7,
            "parent": None,
            "function": "torch.load",
        }
        end = {**begin, "kind": "call_end"}
        shard.records[at:at] = [begin, end]

    comparison = runs(Program(), Program(), edit=edit)

    assert comparison.verdict == "same"
    assert any("threads" in note for note in comparison.notes)


def test_a_tolerance_applies_to_recorded_numbers(runs):
    """Digests are compared exactly all the same."""
    choice = Choice(tolerance=Tolerance(absolute=0.2), kinds=["arguments", "settings"])
    comparison = runs(Program(), Program(lr=0.2), choice=choice)

    assert comparison.verdict == "same"


def test_what_comes_before_the_chosen_steps_is_told_as_that(runs):
    """The state is followed from the start."""
    choice = Choice(first_step=3)
    comparison = runs(Program(steps=5), Program(steps=5, batches="aXcdefgh"), choice=choice)

    assert (first(comparison).kind, first(comparison).step) == ("parameters", 3)
    assert first(comparison).what.endswith("since step 2")
    assert comparison.ranks[0].steps == 2
    assert first(comparison).steps == 2


OPS = st.lists(
    st.lists(st.tuples(st.sampled_from("fgh"), st.sampled_from("vw"), st.booleans()), max_size=4),
    min_size=1,
    max_size=5,
)


def _recorded(folder, name, program, *, ids):
    """Record steps of calls that have an argument and change a variable; ids are no difference."""
    trace = TraceBuilder(folder / name, run_id=name)
    shard = trace.rank()
    for _ in range(ids):
        shard._new_id()
    variables = {each: shard.variable(each, data=tensor("start")) for each in "vw"}
    for step, ops in enumerate(program):
        shard.step(step)
        for function, variable, has_change, argument, content in ops:
            with shard.call(function, {"x": argument}) as call:
                shard.observe("begin", call, function)
                if has_change:
                    shard.change(variables[variable], during=call, data=tensor(content))
                shard.observe("end", call, function)
        shard.observe("step_end")
    trace.write()


@settings(max_examples=40, deadline=None)
@given(ops=OPS, data=st.data())
def test_a_trace_equals_itself_and_a_change_is_found_in_its_step(tmp_path_factory, ops, data):
    """Whatever was recorded, and whatever of it is changed."""
    folder = tmp_path_factory.mktemp("runs")
    program = [
        [(*op, at, f"{step}.{at}") for at, op in enumerate(ops_)] for step, ops_ in enumerate(ops)
    ]
    _recorded(folder, "a", program, ids=0)
    _recorded(folder, "b", program, ids=5)

    assert between(folder).verdict == "same"

    places = [(step, at) for step, ops_ in enumerate(program) for at in range(len(ops_))]
    if not places:
        return
    step, at = data.draw(st.sampled_from(places))
    function, variable, has_change, argument, content = program[step][at]
    kind = data.draw(st.sampled_from(["arguments", "calls", *["parameters"] * has_change]))
    changed = {
        "arguments": (function, variable, has_change, argument + 100, content),
        "calls": (function * 2, variable, has_change, argument, content),
        "parameters": (function, variable, has_change, argument, f"{content}x"),
    }[kind]
    program[step][at] = changed
    _recorded(folder, "b", program, ids=2)

    found = between(folder).divergences[0]

    assert (found.kind, found.step) == (kind, step)


def _process(folder, program, *, pid, wall_ns, restart=0):
    """Write the shard of one process of rank 0, of several that a run has."""
    trace = TraceBuilder(folder, run_id=folder.name)
    shard = trace.rank()
    shard.records[0].update(pid=pid, restart=restart, clock={"wall_ns": wall_ns, "monotonic_ns": 0})
    program.record(shard)
    path = trace.write()
    path.rename(path.with_name(f"trace_r0_p{pid}.json"))


def test_several_processes_of_a_rank_are_compared_by_age(tmp_path):
    """One waits for the other, whatever their process ids are."""
    for name, pids in (("a", (100, 200)), ("b", (400, 300))):
        _process(tmp_path / name, Waiting(), pid=pids[0], wall_ns=1)
        _process(tmp_path / name, Program(), pid=pids[1], wall_ns=2)

    comparison = between(tmp_path)

    assert (comparison.verdict, comparison.steps) == ("same", 4)
    assert len(comparison.ranks) == 1


def test_of_a_job_that_was_restarted_the_last_restart_is_compared(tmp_path):
    """What was tried before is no difference."""
    _process(tmp_path / "a", Program(lr=9.0), pid=100, wall_ns=1)
    _process(tmp_path / "a", Program(), pid=200, wall_ns=2, restart=1)
    _process(tmp_path / "b", Program(), pid=300, wall_ns=3)

    assert between(tmp_path).verdict == "same"


@pytest.mark.parametrize("holders", [("a", "b", "a"), ("a", "", "b")])
def test_who_holds_a_parameter_is_followed_back_and_forth(holders):
    """Also where it comes to be as it was."""
    variables = Variables()
    for seq, holder in enumerate(holders):
        record = {
            "kind": "var",
            "seq": seq,
            "event": "changed" if seq else "appeared",
            "id": 1,
            "names": ["w"],
            "role": "parameter",
            "held_by": [{"optimizer": holder, "group": 0}] if holder else [],
        }
        variables.take(record, BEFORE_FIRST_STEP)

        assert variables.known["parameter", "w"]["held_by"].value == (holder or "no optimizer")


def test_what_one_rank_does_is_the_cause_of_what_others_see(tmp_path):
    """Ranks are put in the order of the stream; what follows from another rank gets no hint."""
    for name, batches in (("a", "abcdefgh"), ("b", "abXdefgh")):
        trace = TraceBuilder(tmp_path / name, run_id=name, world_size=2)
        Program().record(trace.rank(0))
        Program(batches=batches).record(trace.rank(1))
        for record in trace.rank(0).records:
            is_summed = record.get("event") == "changed" and record["step"] == 2
            if name == "b" and is_summed and record["attributes"].get("grad"):
                record["attributes"] = {"grad": tensor("other")}
        trace.write()

    comparison = between(tmp_path)

    told = [(each.kind, each.rank) for each in comparison.divergences]
    assert told == [("arguments", 1), ("gradients", 0), ("parameters", 1)]
    assert comparison.ranks[0].divergences[0].likely
    assert not first(comparison, "gradients").likely


@pytest.mark.parametrize(("tracker", "verdict"), [("subclass", "differ"), ("sampler", "same")])
def test_what_another_tracker_does_not_tell_of_is_no_difference(runs, tracker, verdict):
    """The optimizer is told of in one trace only."""

    def edit(shard):
        shard.records[:] = [each for each in shard.records if each.get("role") != "optimizer"]

    headers = ({"tracker": "subclass"}, {"tracker": tracker})
    comparison = runs(Program(), Program(), headers=headers, edit=edit)

    assert comparison.verdict == verdict
    assert (f"the tracker is subclass in A and {tracker} in B" in comparison.notes) == (
        tracker != "subclass"
    )


def test_gradients_that_differ_within_a_step_count_though_they_are_cleared_in_it(tmp_path):
    """At the end of the step there are none."""
    for name, grad in (("a", "x"), ("b", "y")):
        trace = TraceBuilder(tmp_path / name, run_id=name)
        shard = trace.rank()
        variable = shard.variable("w", data=tensor("d"), grad=None)
        shard.step(0)
        for function, value in ((BACKWARD, tensor(grad)), (CLEAR, None)):
            with shard.call(function) as call:
                shard.observe("begin", call, function)
                shard.change(variable, during=call, grad=value)
                shard.observe("end", call, function)
        trace.write()

    (rank,) = between(tmp_path).ranks

    assert [(each.first_step, each.gradients) for each in rank.spread] == [(-1, 0), (0, 1)]


def test_a_run_that_was_cut_within_a_step_lacks_no_call_of_it(runs):
    """Both came to the same step, and one ends in the midst of it."""

    def edit(shard):
        begins = [at for at, each in enumerate(shard.records) if each.get("function") == FORWARD]
        del shard.records[begins[-2] :]

    comparison = runs(Program(), Program(), complete=(True, False), edit=edit)

    assert (comparison.verdict, comparison.is_complete) == ("same", False)


def test_variables_that_come_together_again_no_longer_count(runs):
    """A difference that lasts for two steps."""

    def edit(shard):
        for record in shard.records:
            is_changed = record.get("event") == "changed" and record["step"] in (1, 2)
            if is_changed and "data" in record["attributes"]:
                record["attributes"] = {"data": tensor(f"other{record['step']}")}

    comparison = runs(Program(steps=5), Program(steps=5), edit=edit)

    assert kinds(comparison) == ["parameters"]
    assert (first(comparison).steps, first(comparison).last_step) == (2, 2)
    assert [each.parameters for each in comparison.ranks[0].spread] == [0, 2, 0]
