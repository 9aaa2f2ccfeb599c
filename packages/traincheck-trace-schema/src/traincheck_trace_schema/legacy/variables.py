"""The states of variables that 0.x dumped, as the changes that 1.0 tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from traincheck_trace_schema.legacy import values
from traincheck_trace_schema.values import Json

if TYPE_CHECKING:
    from collections.abc import Iterator


PARAMETER = "torch.nn.Parameter"
_SHORT = "Parameter"  # how some records of 0.x call it

# What torch itself says of a tensor; other attributes are marks of the program.
_OF_TORCH = frozenset(
    {
        *("data", "grad", "requires_grad", "shape", "dtype", "device", "layout", "name", "names"),
        *("ndim", "nbytes", "itemsize", "grad_fn", "grad_dtype", "retains_grad", "var_type"),
    }
)


@attrs.define
class _Known:
    """What was told of a variable, and where last."""

    id: int
    attributes: Mapping[str, Json]
    seq: int
    is_stale: bool = False  # records in between were left out


@attrs.define
class Variables:
    """Follows the variables of a process, each by its name."""

    _known: dict[str, _Known] = attrs.field(factory=dict)

    def on_gap(self) -> None:
        """Take what comes next as a new beginning: what lies between was not recorded."""
        for known in self._known.values():
            known.is_stale = True

    def tell(self, record: Mapping[str, Any], seq: int) -> Iterator[dict[str, Any]]:
        """Yield what stands for a dumped state: all of it at first, then what is new in it.

        Args:
            record: The record of 0.x.
            seq: Where the record that this yields will stand.
        """
        name = record["var_name"]
        attributes = _attributes(record["attributes"])
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = _Known(len(self._known), attributes, seq)
            yield _told(record, known.id, "baseline", attributes)
            return
        news = {
            attribute: item
            for attribute, item in attributes.items()
            if attribute not in known.attributes or known.attributes[attribute] != item
        }
        if known.is_stale:
            yield _told(record, known.id, "baseline", attributes)
        elif news:
            yield _told(record, known.id, "changed", news, between=[known.seq, seq])
        else:
            return
        known.attributes = {**known.attributes, **attributes}
        known.seq, known.is_stale = seq, False


def variable_type(kind: str) -> str:
    """Return the type of a variable as the documents write it."""
    return PARAMETER if kind in (_SHORT, f"torch.nn.parameter.{_SHORT}") else kind


def is_told(attribute: str) -> bool:
    """Whether an attribute of a variable is one that traces of 1.0 may have."""
    is_of_torch = attribute in _OF_TORCH or attribute.startswith("is_")
    is_compared = attribute in ("data", "grad", "requires_grad")
    return is_compared or not (is_of_torch or values.is_address(attribute))


def _told(
    record: Mapping[str, Any], id_: int, event: str, attributes: Mapping[str, Json], **fields: Any
) -> dict[str, Any]:
    kind = variable_type(record["var_type"])
    return {
        "kind": "var",
        "event": event,
        "id": id_,
        "names": [record["var_name"]],
        "role": "parameter" if kind.endswith(_SHORT) else "buffer",
        "type": kind,
        "storage": id_,  # who shares memory is not told
        "attributes": attributes,
        **fields,
    }


def _attributes(fields: Mapping[str, Any]) -> dict[str, Json]:
    """Return the attributes that traces of 1.0 have, the program's own marks among them."""
    told: dict[str, Json] = {}
    if (data := _tensor(fields, "data")) is not None:
        told["data"] = data
    if "grad" in fields:
        grad = _tensor(fields, "grad")
        if fields["grad"] is None or grad is not None:
            told["grad"] = grad
    for name, item in fields.items():
        if name == "requires_grad" and isinstance(item, bool):
            told[name] = item
        elif name not in ("data", "grad") and is_told(name) and isinstance(item, bool | int | str):
            told[name] = values.plain(item)
    return told


def _tensor(fields: Mapping[str, Any], attribute: str) -> Json:
    """Return what the dump of `data` or `grad` tells; a gradient is shaped as its parameter is."""
    dump = fields.get(attribute)
    described = values.tensor(fields)
    if described is None or dump is None:
        return None
    if attribute == "grad":
        described.pop("requires_grad", None)
    if isinstance(dump, list):
        described["data"] = [_number(item) for item in dump]
    elif isinstance(dump, dict):
        statistics = {name: _number(item) for name, item in dump.items() if name != "shape"}
        described["statistics"] = statistics
    elif isinstance(dump, int) and not isinstance(dump, bool):
        described["digest"] = values.digest(dump)
    else:
        return None
    return {"tensor": described}


def _number(raw: Any) -> Json:
    return {"cut": "float"} if raw is None else values.plain(raw)
