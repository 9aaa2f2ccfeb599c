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
_OTHER_STEPPERS = word_set(
    "env envs environment simulator simulation game world prof profile profiler"
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
