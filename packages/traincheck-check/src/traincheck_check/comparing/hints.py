"""What a first difference usually comes from, and where to look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from traincheck_check.comparing.values import Parting

OF_ERROR: Final = "Look at the exception first: what follows differs because of it."
OF_EVALUATION: Final = "Look at how often, and after which steps, each run evaluates."
OF_PAUSE: Final = "Record more steps (a shorter sampling interval) to see where."
_OF_WEIGHTS: Final = (
    "The runs begin with other weights: look at the seed, at how layers are initialised, and at "
    "the checkpoint that is loaded."
)
_OF_MODE: Final = "One run is in evaluation mode: look at who calls train() and eval(), and when."
_OF_BATCH: Final = (
    "Parameters are the same so far, so the data differ: look at the order of the samples (seed, "
    "shuffling, sampler, workers), at what is loaded, and at augmentation."
)
_OF_RANDOM: Final = (
    "The same call gives something else for the same arguments, as far as they are recorded: look "
    "at random numbers (dropout, a seed, draws that one run makes in addition), at inputs of which "
    "no content is recorded, and at versions of libraries and devices."
)
_OF_SEED: Final = "The runs are seeded differently: all random numbers after this differ."
_OF_PRECISION: Final = "The runs compute in other precision here: look at autocast."
_OF_GRAD_MODE: Final = "Gradients are off in one run here: look at no_grad()."
_OF_SETTINGS: Final = "Look at the settings that the two programs were started with."
_OF_CHANGE: Final = "Look at what changes it while the program runs, as a scheduler does."
_OF_FROZEN: Final = (
    "Parameters that need no gradient are not trained: look at where requires_grad is set."
)
_OF_HOLDING: Final = (
    "Only what an optimizer holds is trained: look at the parameters that it is made with."
)
_OF_VARIABLES: Final = {
    "parameters": (
        "Gradients were the same, as far as they are recorded, so look at the step itself: at the "
        "optimizer, its settings, and what else writes to parameters."
    ),
    "gradients": (
        "Calls and arguments were the same, as far as they are recorded: look at data of which no "
        "content is recorded, at random numbers (dropout), and at how gradients are summed up."
    ),
    "buffers": "What the model keeps of its inputs differs: look at the data and at the mode.",
}
_SEEDING: Final = frozenset(("manual_seed", "manual_seed_all", "seed", "set_rng_state"))
_MISSING: Final = (
    ("Module.eval", _OF_MODE),
    ("Module.train", _OF_MODE),
    ("zero_grad", "Gradients of earlier steps add up where they are not cleared."),
    ("backward", "Without it there are no new gradients."),
    ("Optimizer.step", "Without it parameters stay as they are."),
    ("scheduler", "The learning rate stays as it is where the scheduler does not step."),
    ("clip_grad", "Gradients are not clipped in one run."),
    ("step", "Without an optimizer's step parameters stay as they are."),
    ("dropout", "Dropout applies in one run only, and draws random numbers."),
)


def of_argument(function: str, name: str, found: Parting, *, is_first: bool) -> str:
    """Return what a differing argument points at; `is_first`: nothing else differs yet."""
    last = function.rpartition(".")[2]
    is_mode = name in {"training", "train"} or found.where == ".training"
    return _first_that_applies(
        (last in _SEEDING, _OF_SEED),
        (is_mode, _OF_MODE),
        (name.startswith("context autocast"), _OF_PRECISION),
        (name == "context grad_mode", _OF_GRAD_MODE),
        (found.is_content, _OF_BATCH if is_first else ""),
        (name == "params", _OF_HOLDING),
        (last == "__init__", "It is made with another setting."),
        (is_first, "Look at what the program passes here."),
    )


def of_result(*, is_first: bool) -> str:
    """Return what a differing result points at."""
    return _OF_RANDOM if is_first else ""


def of_missing(function: str, letter: str, *, is_order: bool) -> str:
    """Return what a missing call leads to; `letter` is the run that does not make it."""
    if is_order:
        return "Look at what the program does here in each run."
    for part, meaning in _MISSING:
        if part in function:
            return meaning
    return f"Look at the condition under which run {letter} passes it by."


def of_variables(kind: str, attribute: str, *, is_before: bool, is_first: bool) -> str:
    """Return what a differing variable points at.

    Args:
        kind: The kind of the difference.
        attribute: What differs.
        is_before: No step was made yet.
        is_first: Nothing else differed so far.
    """
    return _first_that_applies(
        (attribute == "training", _OF_MODE),
        (attribute == "requires_grad", _OF_FROZEN),
        (attribute in {"held_by", "params"}, _OF_HOLDING),
        (kind == "settings", _OF_SETTINGS if is_before else _OF_CHANGE),
        (not is_first, ""),  # it follows from what was found before
        (is_before, _OF_WEIGHTS),
        (True, _OF_VARIABLES.get(kind, "")),
    )


def _first_that_applies(*rules: tuple[bool, str]) -> str:
    return next((text for applies, text in rules if applies), "")
