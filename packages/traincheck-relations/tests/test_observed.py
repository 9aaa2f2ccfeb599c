"""Of which observations claims are made."""

from traincheck_relations.engine import Watch, propose
from traincheck_relations.registry import load_relations
from traincheck_relations.testing.traces import TraceBuilder, tensor
from traincheck_trace_schema.reading import open_run

STEP = "torch.optim.Optimizer.step"
OTHERS = ("buffer", "module", "optimizer")


def write(folder, *, with_others):
    """Write a run of two ranks whose optimizer moves a weight, and beside it what differs."""
    trace = TraceBuilder(folder, world_size=2)
    for number in range(2):
        rank = trace.rank(number)
        rank.function(STEP)
        weight = rank.variable("model.weight", data=tensor("start"), grad=None, requires_grad=True)
        if with_others:
            mean = rank.variable("mean", role="buffer", type_="torch.Tensor", data=tensor("start"))
            layer = rank.variable("a", "b", role="module", type_="Layer", training=True)
            group = rank.variable("optimizer0.group0", role="optimizer", type_="Adam", steps=0)
        for step in range(6):
            rank.step(step)
            with rank.call(STEP) as call:
                rank.observe("begin", call, STEP)
                if with_others:
                    rank.observe("begin", call, STEP, roles=OTHERS, attributes=())
                    rank.change(group, during=call, steps=step + 1)
                    rank.change(mean, during=call, data=tensor(f"rank{number}{step}"))
                    rank.change(layer, during=call, training=step % 2 == 0)
                rank.change(weight, during=call, data=tensor(f"d{step}"))
                rank.observe("end", call, STEP)
                if with_others:
                    rank.observe("end", call, STEP, roles=OTHERS, attributes=())
            rank.observe("step_end")
            if with_others:
                rank.observe("step_end", roles=("buffer",), attributes=("data",))
                rank.observe("step_end", roles=("module",), attributes=("training",))
    trace.write()
    return open_run([folder])


def test_other_roles_change_no_claim_about_parameters_and_hide_none(tmp_path):
    """What is told of buffers, modules and optimizers leaves these as they are."""
    relations = load_relations(only=("APIContainRelation", "ConsistencyRelation"))
    plain = write(tmp_path / "plain", with_others=False)
    rich = write(tmp_path / "rich", with_others=True)

    candidates = propose(plain, relations).candidates

    assert candidates == propose(rich, relations).candidates
    assert any(candidates.values())
    occasions = []
    for run in (plain, rich):
        watch = Watch(run, relations, candidates)
        occasions.append([(name, one.param, one.held, one.at.window) for name, one in watch])
        assert watch.faults == []
    assert occasions[0] == occasions[1]
    assert all(held for _, _, held, _ in occasions[0])
