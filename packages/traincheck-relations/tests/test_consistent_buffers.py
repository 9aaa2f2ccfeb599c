"""`ConsistencyRelation` about buffers: of a type of module, across ranks, when a step ends."""

import pytest

from traincheck_relations.testing.models import MEAN, NORM, Runs, broken, verdicts
from traincheck_relations.testing.traces import TraceBuilder, tensor
from traincheck_relations.variables.consistency import ConsistencyRelation
from traincheck_trace_schema.invariants import OccasionParam, ScopeParam, VarTypeParam

RELATION = ConsistencyRelation()
OF_NORM = VarTypeParam(var_type=NORM, attr_name="running_mean")
CLAIM = (OF_NORM, OF_NORM, OccasionParam(phase="step_end"), ScopeParam(scope="ranks"))


@pytest.fixture
def runs(tmp_path):
    return Runs(RELATION, TraceBuilder(tmp_path, world_size=2))


def of_buffers(proposals):
    return [params for params in proposals if params[0] == OF_NORM]


def test_statistics_that_ranks_share_are_compared(runs):
    """By the type of module that has them, as a norm that is synchronised."""
    for rank in (0, 1):
        runs.model(rank).train(range(4))

    assert of_buffers(runs.proposals()) == [CLAIM]
    assert verdicts(runs.examples(CLAIM)) == [True] * 4
    assert RELATION.describe(CLAIM) == (
        f"The running_mean of each {NORM} is equal on all ranks of the world when a step ends"
    )


def test_the_step_in_which_ranks_differ_is_told(runs):
    """With the buffer and the rank."""
    for rank in (0, 1):
        model = runs.model(rank)
        model.train(range(2))
        model.rank.step(2)
        model.change(MEAN, data=tensor(f"of rank {rank}"))
        model.look("step_end")

    examples = runs.examples(CLAIM)

    assert broken(examples) == [2]
    assert examples[-1].happened == f"{MEAN}.data on rank 1 differs from that on rank 0"


def test_buffers_of_other_modules_and_a_single_process_say_nothing(tmp_path):
    """Nor is anything proposed of buffers that never change, as masks."""
    single = Runs(RELATION, TraceBuilder(tmp_path / "single"))
    single.model().train(range(3))
    still = Runs(RELATION, TraceBuilder(tmp_path / "still", world_size=2))
    for rank in (0, 1):
        still.model(rank).train(range(3), moves=())
    other = VarTypeParam(var_type="torch.nn.InstanceNorm1d", attr_name="running_mean")

    assert of_buffers(single.proposals()) == []
    assert single.examples(CLAIM) == []
    assert of_buffers(still.proposals()) == []
    assert still.examples((other, other, *CLAIM[2:])) == []


def test_each_type_of_module_is_judged_by_itself(runs):
    """Statistics of one type may be each rank's own, and those of another be shared."""
    own = "model.own.running_mean"
    for rank in (0, 1):
        model = runs.model(rank)
        model.add("model.own", role="module", type_="OwnNorm", training=True)
        model.add(own, role="buffer", type_="torch.Tensor", data=tensor(f"of rank {rank}"))
        model.train([0])
    other = VarTypeParam(var_type="OwnNorm", attr_name="running_mean")

    examples = runs.examples(CLAIM, (other, other, *CLAIM[2:]))

    assert {(one.param, one.at.variable, one.held) for one in examples} == {
        (0, MEAN, True),
        (1, own, False),
    }


def test_parameters_and_buffers_are_looked_at_apart(runs):
    """A claim about one gives no example of the other."""
    for rank in (0, 1):
        runs.model(rank).train(range(3))
    of_parameters = VarTypeParam(var_type="torch.nn.Parameter", attr_name="data")
    at_step_end = (of_parameters, of_parameters, *CLAIM[2:])

    variables = [
        {one.at.variable for one in runs.examples(params)} for params in (CLAIM, at_step_end)
    ]

    assert variables == [{MEAN}, {"model.fc.weight", "model.bn.weight"}]


def test_requirements_name_buffers_and_the_modules_that_have_them():
    """Parameters are not needed."""
    assert RELATION.requires(CLAIM).variables == {"buffer": {"data"}, "module": {"training"}}
