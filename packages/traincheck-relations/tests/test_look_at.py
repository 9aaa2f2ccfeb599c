"""Each relation says what to look at first where its claim is broken."""

import re

import pytest

from traincheck_relations.registry import load_relations
from traincheck_trace_schema.invariants import (
    APIParam,
    InputOutputParam,
    OccasionParam,
    ScopeParam,
    ValueParam,
    VarNameParam,
    VarTypeParam,
)

STEP = "torch.optim.Optimizer.step"
BACKWARD = "torch.Tensor.backward"
ZERO_GRAD = "torch.optim.Optimizer.zero_grad"
CLIP = "torch.nn.utils.clip_grad_norm_"
UNSCALE = "torch.GradScaler.unscale_"
SCHEDULER_STEP = "torch.optim.lr_scheduler.LRScheduler.step"
LOSS = "torch.nn.functional.cross_entropy"
MODEL = ValueParam(name="parameters", value="0123456789abcdef")
STEP_END = OccasionParam(phase="step_end")
WITHIN_STEP = ValueParam(name="within", value="step")
AT_BEGIN = OccasionParam(phase="begin", function=STEP)
AT_END = OccasionParam(phase="end", function=STEP)
RANKS = ScopeParam(scope="ranks")


def api(name):
    return APIParam(api_full_name=name)


def var(attribute, type_="torch.nn.Parameter", **changes):
    return VarTypeParam(var_type=type_, attr_name=attribute, **changes)


def flag(attribute, *, is_on):
    type_ = "torch.nn.Module" if attribute == "training" else "torch.nn.Parameter"
    return (
        VarNameParam(var_name="model.a", attr_name=attribute, var_type=type_, const_value=is_on),
        STEP_END,
        MODEL,
    )


def given(name, function=LOSS, type_="torch.Tensor", *, is_input=True, path=None):
    return InputOutputParam(
        name=name, type=type_, api_name=function, is_input=is_input, additional_path=path
    )


def value(of, name="value"):
    return ValueParam(name=name, value=of)


YES, NO = (ValueParam(name="value", value=is_so) for is_so in (True, False))


def ranks(attribute, occasion):
    return (var(attribute), var(attribute), occasion, RANKS)


TIES = (
    VarNameParam(var_name="model.a", attr_name="data"),
    VarNameParam(var_name="model.b", attr_name="data"),
    STEP_END,
    ScopeParam(scope="ties"),
)
BUFFERS = (
    var("running_mean", "torch.nn.SyncBatchNorm"),
    var("running_mean", "torch.nn.SyncBatchNorm"),
    STEP_END,
    RANKS,
)
NORM = "torch.nn.BatchNorm2d"
GRAD = {"pre_value": "none", "post_value": "non_zero"}
CASES = [
    ("APIContainRelation", (api("f"), api("g")), "condition"),
    ("APIContainRelation", (api(STEP), var("data", quantifier="some")), "learning rate"),
    ("APIContainRelation", (api(STEP), var("data")), "16 bits"),
    ("APIContainRelation", (api(BACKWARD), var("grad", **GRAD)), "graph"),
    ("APIContainRelation", (api(BACKWARD), var("grad", quantifier="some", **GRAD)), "whole model"),
    ("APIContainRelation", (api(ZERO_GRAD), var("grad", post_value="none")), "never cleared"),
    ("APIContainRelation", (api("f"), var("data")), "other names"),
    ("CallCountRelation", (api(BACKWARD), value(1, "at_least")), "backward pass"),
    ("CallCountRelation", (api(SCHEDULER_STEP), api(STEP)), "scheduler"),
    ("CallCountRelation", (api(CLIP), value(1, "ever"), MODEL), "clip"),
    ("ConsistencyRelation", TIES, "tied"),
    ("ConsistencyRelation", BUFFERS, "broadcast_buffers"),
    ("ConsistencyRelation", ranks("grad", AT_BEGIN), "DDP"),
    ("ConsistencyRelation", ranks("data", AT_END), "seed"),
    (
        "ConsistentInputOutputRelation",
        (
            given("ctx.autocast.dtype", "f", "torch.dtype"),
            api("f"),
            given("output_tensors", "f", is_input=False, path=("dtype",)),
        ),
        "autocast",
    ),
    (
        "ConsistentInputOutputRelation",
        (
            given("x", "f", path=("shape", 0)),
            api("f"),
            given("output_tensors", "f", is_input=False, path=("shape", 0)),
        ),
        "batch_first",
    ),
    (
        "ConsistentInputRelation",
        (given("input", path=("shape",)), given("target", path=("shape",))),
        "broadcast",
    ),
    ("ConsistentInputRelation", (given("input", path=("requires_grad",)), YES), "detach"),
    (
        "ConsistentInputRelation",
        (
            given("input", "torch.nn.functional.nll_loss", path=("facts", "rows_are_log_shares")),
            YES,
        ),
        "log_softmax",
    ),
    (
        "ConsistentInputRelation",
        (given("input", path=("facts", "rows_sum_to_one")), NO),
        "softmax",
    ),
    (
        "ConsistentInputRelation",
        (given("input", path=("facts", "has_zero_row")), NO),
        "transfer",
    ),
    (
        "ConsistentOutputRelation",
        (api(LOSS), var("finite", "torch.Tensor", const_value=True)),
        "divides",
    ),
    (
        "ConsistentOutputRelation",
        (api(LOSS), var("dtype", "torch.Tensor", const_value={"dtype": "float32"}), MODEL),
        "autocast",
    ),
    (
        "ConstantArgumentRelation",
        (given("reduction", type_="str", path=()), value("sum"), MODEL),
        "averages over batches of unequal size",
    ),
    (
        "ConstantArgumentRelation",
        (given("is_causal", type_="bool", path=()), YES, MODEL),
        "default",
    ),
    (
        "ConstantStateRelation",
        (var("training", "torch.nn.Module", const_value=True), STEP_END),
        "eval()",
    ),
    ("ConstantStateRelation", flag("training", is_on=False), "train()"),
    ("ConstantStateRelation", flag("requires_grad", is_on=False), "made anew"),
    ("ConstantStateRelation", flag("requires_grad", is_on=True), "adapter"),
    ("DistinctArgumentRelation", (given("x", "f"), value("calls", "between")), "workers"),
    ("DistinctArgumentRelation", (given("x", "f"), value("run", "between")), "set_epoch"),
    ("DistinctArgumentRelation", (given("x", "f"), value("ranks", "between")), "split by rank"),
    ("DistinctGradientRelation", (var("grad"), AT_BEGIN), "buffers"),
    ("FunctionCoverRelation", (api(CLIP), api(STEP), WITHIN_STEP), "clipped"),
    ("FunctionCoverRelation", (api(UNSCALE), api(CLIP), WITHIN_STEP), "loss scale"),
    ("FunctionCoverRelation", (api("f"), api("g")), "f and g"),
    ("FunctionLeadRelation", (api(ZERO_GRAD), api(STEP)), "cleared"),
    (
        "GradientPathRelation",
        (given("input", "f", path=("requires_grad",)), value("model.d", "module")),
        "model.d",
    ),
    ("HeldByOptimizerRelation", (var("held_by", post_value="non_none"), AT_BEGIN), "plain list"),
    (
        "HeldByOptimizerRelation",
        (
            var("lr", "torch.optim.Optimizer", post_value="non_zero", quantifier="some"),
            AT_BEGIN,
        ),
        "warm-up",
    ),
    ("HeldByOptimizerRelation", (var("weight_decay", post_value="zero"), AT_BEGIN), "pattern"),
    (
        "InitialValueRelation",
        (var("dt_bias", "__main__.Mixer"), ValueParam(name="all_equal", value=False), MODEL),
        "torch.ones",
    ),
    (
        "ConsistentInputRelation",
        (given("x", "__main__.Net.forward", path=("facts", "in_unit_interval")), YES),
        "scaled",
    ),
    (
        "ClearedGradientRelation",
        (var("grad", post_value="none"), AT_BEGIN, MODEL),
        "zero_grad",
    ),
    (
        "KeptBetweenStepsRelation",
        (var("data", post_value="unchanged"), AT_BEGIN, MODEL),
        "load_state_dict",
    ),
    (
        "LastingOptimizerRelation",
        (var("held_by", "torch.optim.Optimizer", post_value="unchanged"), AT_BEGIN, MODEL),
        "inside the training loop",
    ),
    (
        "PresentGradientRelation",
        (var("grad", post_value="non_zero"), AT_BEGIN, MODEL),
        "requires_grad",
    ),
    (
        "ParameterMovementRelation",
        (api(STEP), var("data"), value(10, "factor")),
        "unscaled",
    ),
    (
        "ThresholdRelation",
        (given("output", "f", "float", is_input=False), api("f"), given("max_norm", "f", "float")),
        "max_norm",
    ),
    ("TrackedModuleRelation", (api("torch.nn.Linear.forward"),), "ModuleList"),
    ("TrainingModeRelation", (given("training", "f", "bool"), value("stage", "mode")), "constant"),
    (
        "TrainingModeRelation",
        (
            given("self", "torch.nn.Module.forward", "torch.nn.Module", path=("training",)),
            value("learning", "mode"),
        ),
        "eval()",
    ),
    ("TrainingModeRelation", (given("training", "f", "bool"), value("frozen", "mode")), "frozen"),
    (
        "VarPeriodicChangeRelation",
        (var("running_mean", NORM), value(1, "every")),
        "validation",
    ),
    ("VarPeriodicChangeRelation", (var("running_mean", NORM), value(0, "every")), "train()"),
    ("VarPeriodicChangeRelation", (var("average", NORM), value(5, "every")), "interval"),
    ("VarUnchangedRelation", (api(STEP), var("data", post_value="unchanged")), "momentum"),
]
RELATIONS = load_relations()


@pytest.mark.parametrize(("name", "params", "word"), CASES)
def test_each_kind_of_claim_has_its_usual_causes(name, params, word):
    """The same relation fails for other reasons on other functions and attributes."""
    relation = RELATIONS[name]

    assert relation.describe(params)
    assert word in relation.look_at(params)


@pytest.mark.parametrize(("name", "params", "word"), CASES)
def test_causes_can_be_told_one_by_one(name, params, word):
    """Each follows "Look at"; a semicolon stands between them, and nowhere else."""
    del word
    causes = RELATIONS[name].look_at(params).split("; ")

    assert 1 <= len(causes) <= 4
    for cause in causes:
        assert re.match(r"(whether|where|what|(under|at|in)? ?which|who|how|the) ", cause), cause
        assert not cause.endswith((".", ";"))
        assert "{" not in cause


def test_no_relation_is_without():
    """What is new here has causes, too."""
    assert {name for name, _, _ in CASES} == RELATIONS.keys()
