"""`APIContainRelation`: an update of a vector may be lost in rounding, and says nothing then."""

import attrs
import pytest

from traincheck_relations.containment.contain import APIContainRelation
from traincheck_relations.testing.models import Runs, broken, verdicts
from traincheck_relations.testing.traces import TraceBuilder, tensor
from traincheck_trace_schema.invariants import APIParam, VarTypeParam

STEP = "torch.optim.Optimizer.step"
CLAIM = (
    APIParam(api_full_name=STEP),
    VarTypeParam(var_type="torch.nn.Parameter", attr_name="data", quantifier="each"),
)
MATRIX, BIAS = "model.fc.weight", "model.fc.bias"


@attrs.frozen
class Layer:
    """A run in whose model a layer has a matrix and a bias."""

    runs: Runs

    def train(self, *, moves, dtype="float32"):
        """Train two steps in which all have a gradient, and these change."""
        run = self.runs.model()
        run.shapes[MATRIX] = (2, 2)
        for name, shape in ((MATRIX, (2, 2)), (BIAS, (2,))):
            data = tensor("start", shape=shape)
            data["tensor"]["dtype"] = dtype
            run.parameter(name, data=data, grad=tensor("g", shape=shape))
        run.train(range(2), gradients=moves)
        run.end()
        return self.runs.examples(CLAIM)


@pytest.fixture
def layer(tmp_path):
    return Layer(Runs(APIContainRelation(), TraceBuilder(tmp_path)))


def test_a_bias_that_stays_where_its_matrix_moves_says_nothing(layer):
    """A batch norm that follows cancels it: its gradient is what rounding leaves of zero."""
    examples = layer.train(moves=(MATRIX, "model.bn.weight"))

    assert {one.at.variable for one in examples} == {MATRIX, "model.bn.weight"}
    assert all(verdicts(examples))


def test_a_bias_that_stays_with_its_matrix_is_broken(layer):
    """Nothing of the layer moved, which rounding does not explain."""
    examples = layer.train(moves=("model.bn.weight",))

    wrong = {one.at.variable for one in examples if not one.held}
    assert wrong == {MATRIX, BIAS}


def test_a_matrix_that_stays_is_broken(layer):
    """Rounding may lose all of a bias, not all of a matrix, nor all of a norm by itself."""
    examples = layer.train(moves=(BIAS,))

    assert {one.at.variable for one in examples if not one.held} == {MATRIX}
    assert broken(examples) == [0, 1]


def test_a_vector_of_few_bits_that_stays_is_broken(layer):
    """To lose updates is what weights of bfloat16 do wrong."""
    examples = layer.train(moves=(MATRIX,), dtype="bfloat16")

    assert {one.at.variable for one in examples if not one.held} == {BIAS}
