"""What a name says to a reader: `optimizerD` is an optimizer, `valid_epoch` evaluates."""

from __future__ import annotations

import enum
import re


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text that lists them."""
    return frozenset(text.split())


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_EVALUATING = word_set(
    "eval evaluate evaluates evaluation evaluating evaluator val valid validate validates "
    "validation validating test tests testing"
)
_PREPARING = word_set("build collate create download get load make prepare read setup split")
_OPTIMIZING = word_set("opt opts adam adamw sgd lbfgs rmsprop")
_OPTIMIZER_CLASSES = word_set(
    "Adadelta Adafactor Adagrad Adam Adam8bit AdamW AdamW8bit Adamax ASGD LAMB LARS LBFGS Lion "
    "Muon NAdam PagedAdamW8bit RAdam RMSprop Rprop SGD Shampoo SOAP Sophia SparseAdam"
)
_ENVIRONMENTS = word_set("env envs environment simulator simulation game world")
_OTHER_STEPPERS = _ENVIRONMENTS | word_set("prof profile profiler")
_MODELS = word_set(
    "actor backbone critic discriminator model models module net nets network networks policy "
    "resnet student teacher transformer unet"
)
_AFTER_MODEL = word_set("ddp ema engine")  # `model_ema` is a model as `netG` is, `model_path` none
# What is called in a loop of evaluation, too, and is none.
_NO_MODELS = word_set(
    "augment augmentation augmentations callback callbacks collate dist distribution log logger "
    "metric metrics normalize preprocess preprocessing preprocessor print processor random rng "
    "tokenizer transform transforms vocab"
)
_EPOCHS = word_set("ep epoch epochs")
# What is done with a model, rather than asking it.
_HANDLING = word_set(
    "add append apply average broadcast build check checkpoint compare convert copy count create "
    "download export fit freeze fuse init initialize learn load log make merge move optimize plot "
    "prepare print prune push quantize read register reset restore resume save set setup share "
    "show summarize summary swap sync to track train training transfer unfreeze update upload "
    "visualize watch write zero"
)
# What such a thing is done with; a function that makes an epoch has a loop of its own.
_HANDLED = word_set(
    "cuda device dict ema epoch half hook module parameter parameters step steps submodule weights"
)


class Role(enum.Enum):
    """What an object is to training."""

    OPTIMIZER = "optimizer"
    SCALER = "scaler"
    ENGINE = "engine"
    SCHEDULER = "scheduler"
    OTHER = "other"  # has a step() of its own that trains nothing


STEPPING = frozenset({Role.OPTIMIZER, Role.SCALER, Role.ENGINE})


def words(name: str) -> tuple[str, ...]:
    """Split a name into lower-case words; `netG` is `net` and `g`, `latest` is one word."""
    return tuple(word.lower() for word in _WORD.findall(name))


def says_evaluation(name: str) -> bool:
    """Whether a function with this name evaluates; `make_test_set` only prepares."""
    parts = words(name)
    return not _EVALUATING.isdisjoint(parts) and _PREPARING.isdisjoint(parts[:1])


def says_model(name: str) -> bool:
    """Whether a variable of this name is a model; `load_model` and `model_path` are none."""
    parts = list(words(name))
    if not (_HANDLING | _PREPARING).isdisjoint(parts[:1]):
        return False
    while parts and (len(parts[-1]) == 1 or parts[-1] in _AFTER_MODEL):
        parts.pop()
    return bool(parts) and parts[-1] in _MODELS


def says_no_model(name: str) -> bool:
    """Whether a variable of this name is a metric, a transform or the like."""
    return not _NO_MODELS.isdisjoint(words(name))


def says_handling(name: str) -> bool:
    """Whether a function with this name does something with a model other than to ask it."""
    return not (_HANDLING | _HANDLED).isdisjoint(words(name))


def says_epoch(name: str) -> bool:
    """Whether a variable of this name counts epochs."""
    return not _EPOCHS.isdisjoint(words(name))


def says_environment(name: str) -> bool:
    """Whether a variable of this name is an environment in which a policy acts."""
    return not _ENVIRONMENTS.isdisjoint(words(name))


def role_of_name(name: str) -> Role | None:
    """Guess what a variable of this name is."""
    lower, parts = name.lower(), words(name)
    for role, applies in (
        (Role.SCHEDULER, "sched" in lower or "lr" in parts),
        (Role.OTHER, not _OTHER_STEPPERS.isdisjoint(parts)),
        (Role.SCALER, "scaler" in lower),
        (Role.ENGINE, "engine" in parts),
        (Role.OPTIMIZER, "optim" in lower or not _OPTIMIZING.isdisjoint(parts)),
    ):
        if applies:
            return role
    return None


def role_of_maker(dotted: str) -> Role | None:
    """Guess what the class or function with this dotted name makes."""
    _, _, last = dotted.rpartition(".")
    if "lr_scheduler." in dotted or "sched" in last.lower() or last.endswith("LR"):
        return Role.SCHEDULER
    if dotted.startswith("torch.optim.swa_utils."):
        return Role.OTHER
    if ".optim." in f".{dotted}" or last in _OPTIMIZER_CLASSES:
        return Role.OPTIMIZER
    return role_of_name(last)
