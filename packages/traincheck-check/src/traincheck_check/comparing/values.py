"""Whether two recorded values are the same, and if not, in what they differ and by how much."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

import attrs

from traincheck_relations.value import payload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# What names a process, a moment or an address in a text: it says nothing of what the program does.
_INCIDENTAL: Final = re.compile(r"0x[0-9a-fA-F]+|\d{5,}|tmp\w{8}\b|(?<=:)\d{2,5}\b")
_SHOWN = 60  # characters of a text
_ITEMS = 4  # of a list
_ENTERED: Final = ("__main__", "__mp_main__")
_PLAIN: Final = ("shape", "dtype", "layout", "global_shape", "placements", "requires_grad")
_CLAIMS: Final = ("zero", "finite")


@attrs.frozen
class Tolerance:
    """From which difference on numbers count as different; by default from any on."""

    absolute: float = 0.0
    relative: float = 0.0

    @property
    def is_exact(self) -> bool:
        """Whether any difference counts."""
        return not (self.absolute or self.relative)

    def covers(self, a: float, b: float) -> bool:
        """Whether two numbers count as equal; NaN equals NaN."""
        if a == b or (math.isnan(a) and math.isnan(b)):
            return True
        return math.isclose(a, b, rel_tol=self.relative, abs_tol=self.absolute)


@attrs.frozen
class Parting:
    """In what two values differ: where inside them, and how each reads there."""

    where: str  # "[0].shape", "" for the whole value
    in_a: str
    in_b: str
    size: str = ""
    is_content: bool = False  # of tensors that are alike in all but their elements


def parting(a: Any, b: Any, tolerance: Tolerance) -> Parting | None:
    """Return the first difference of two values as they stand in traces; None if there is none.

    What only one of the traces tells (a digest, say) is no difference.
    """
    if a is b or (type(a) is type(b) and a == b):
        return None
    if type(a) is dict and type(b) is dict:
        return _of_objects(a, b, tolerance)
    if isinstance(a, list) and isinstance(b, list):
        return _of_lists(a, b, tolerance)
    if (numbers := _numbers(a, b)) is not None:
        is_same = tolerance.covers(*numbers)
        return None if is_same else Parting("", shown(a), shown(b), _distance(*numbers))
    is_same = type(a) is str and type(b) is str and _essence(a) == _essence(b)
    return None if is_same else Parting("", shown(a), shown(b))


def shown(value: Any) -> str:
    """Return how a value reads in a sentence."""
    if isinstance(value, str):
        cut = f"{value[:_SHOWN]}..." if len(value) > _SHOWN else value
        return repr(cut)
    if isinstance(value, list):
        return f"[{_listed(value)}]"
    if not isinstance(value, dict):
        return repr(value)
    for key, inner in value.items():
        return _shown_object(key, inner)
    return "{}"


def _shown_object(key: str, inner: Any) -> str:
    if key == "tensor" and isinstance(inner, dict):
        size = "x".join(str(each) for each in inner.get("shape", ())) or "scalar"
        return f"{inner.get('dtype', '?')} tensor ({size})"
    if key == "object" and isinstance(inner, dict):
        return str(inner.get("name") or inner.get("type"))
    if key == "tuple" and isinstance(inner, list):
        return f"({_listed(inner)})"
    if key in {"set", "dict"} and isinstance(inner, list):
        return f"a {key} of {len(inner)}"
    if key == "text" and isinstance(inner, dict):
        return shown(f"{inner.get('start', '')}...")
    return str(inner)


def _listed(items: Sequence[Any]) -> str:
    more = ", ..." if len(items) > _ITEMS else ""
    return ", ".join(map(shown, items[:_ITEMS])) + more


def _essence(text: str) -> str:
    """Return a text without what is incidental: of a path, where the file lies."""
    plain = _INCIDENTAL.sub("#", text)
    return plain.rpartition("/")[2] if "/" in plain else plain


def _number(value: Any) -> float | None:
    if type(value) is int or type(value) is float:
        return value
    if type(value) is dict and len(value) == 1:
        text = value.get("float", value.get("int"))
        if isinstance(text, str):
            try:
                return int(text) if "int" in value else float(text)
            except ValueError:
                return None
    return None


def _numbers(a: Any, b: Any) -> tuple[float, float] | None:
    """Return two values as numbers; None if one is none."""
    x, y = _number(a), _number(b)
    return None if x is None or y is None else (x, y)


def _distance(x: float, y: float) -> str:
    return f"by {abs(x - y):.3g}" if math.isfinite(x) and math.isfinite(y) else ""


def _of_lists(a: Sequence[Any], b: Sequence[Any], tolerance: Tolerance) -> Parting | None:
    for index, (x, y) in enumerate(zip(a, b, strict=False)):
        found = parting(x, y, tolerance)
        if found is not None:
            return attrs.evolve(found, where=f"[{index}]{found.where}")
    if len(a) != len(b):
        return Parting(".length", str(len(a)), str(len(b)))
    return None


def _of_objects(a: dict[str, Any], b: dict[str, Any], tolerance: Tolerance) -> Parting | None:
    """Compare values that stand as objects with one key, which says what they are."""
    key = next(iter(a), "")
    if (numbers := _numbers(a, b)) is not None:
        is_same = tolerance.covers(*numbers)
        return None if is_same else Parting("", shown(a), shown(b), _distance(*numbers))
    if a.keys() != b.keys():
        return Parting("", shown(a), shown(b))
    if key == "tensor":
        return _of_tensors(payload(a, key), payload(b, key), tolerance)
    if key == "object":
        return _of_program_objects(payload(a, key), payload(b, key), tolerance)
    if key == "set":
        return _of_lists(sorted(a[key], key=repr), sorted(b[key], key=repr), tolerance)
    # Where a tensor lies is told of the runs as a whole.
    return None if key in {"device", ""} else parting(a[key], b[key], tolerance)


def _of_program_objects(
    a: Mapping[str, Any], b: Mapping[str, Any], tolerance: Tolerance
) -> Parting | None:
    for field in ("type", "name"):
        x, y = a.get(field), b.get(field)
        if x != y and _inside_program(x) != _inside_program(y):
            return Parting(f".{field}", str(x), str(y))
    return _of_fields(a.get("attributes") or {}, b.get("attributes") or {}, tolerance)


def _inside_program(name: Any) -> Any:
    """Return a name without what tells a program's module from that of a process it spawned."""
    first, dot, rest = str(name).partition(".")
    return rest if dot and first in _ENTERED else name


def _of_fields(a: Mapping[str, Any], b: Mapping[str, Any], tolerance: Tolerance) -> Parting | None:
    """Compare what both tell."""
    for name in a:
        if name in b and a[name] != b[name]:
            found = parting(a[name], b[name], tolerance)
            if found is not None:
                return attrs.evolve(found, where=f".{name}{found.where}")
    return None


def _of_tensors(a: Mapping[str, Any], b: Mapping[str, Any], tolerance: Tolerance) -> Parting | None:
    for field in _PLAIN:
        x, y = a.get(field), b.get(field)
        if x != y and not (field == "requires_grad" and bool(x) == bool(y)):
            return Parting(f".{field}", _plainly(x), _plainly(y))
    found = _of_content(a, b, tolerance)
    if found is not None:
        return found
    if not tolerance.is_exact:
        return None
    claims = [(name, a.get(name), b.get(name)) for name in _CLAIMS]
    told = b.get("facts") or {}
    claims += [(name, held, told.get(name)) for name, held in (a.get("facts") or {}).items()]
    for name, x, y in claims:
        if x is not None and y is not None and x != y:
            return Parting(f".{name}", _plainly(x), _plainly(y), is_content=True)
    return None


def _plainly(value: Any) -> str:
    if isinstance(value, list):
        return "x".join(map(str, value)) or "scalar"
    return str(value)


def _of_content(a: Mapping[str, Any], b: Mapping[str, Any], tolerance: Tolerance) -> Parting | None:
    """Compare elements by the most that both traces tell of them."""
    x, y = a.get("digest"), b.get("digest")
    are_digests = isinstance(x, str) and isinstance(y, str) and _algorithm(x) == _algorithm(y)
    if are_digests and x == y:
        return None
    data_a, data_b = a.get("data"), b.get("data")
    if isinstance(data_a, list) and isinstance(data_b, list):
        return _of_elements(data_a, data_b, tolerance)
    statistics = a.get("statistics") or {}, b.get("statistics") or {}
    parted = _of_fields(*statistics, tolerance)
    if are_digests and (tolerance.is_exact or not all(statistics)):
        size = _of_statistics(*statistics) if parted else ""
        return Parting("", _summary(a), _summary(b), size, is_content=True)
    if parted is not None:
        return attrs.evolve(parted, is_content=True)
    return None


def _of_elements(a: Sequence[Any], b: Sequence[Any], tolerance: Tolerance) -> Parting | None:
    apart = [
        index
        for index, (x, y) in enumerate(zip(a, b, strict=False))
        if x != y and parting(x, y, tolerance) is not None
    ]
    if not apart:
        return None
    first, size = apart[0], f"{len(apart):,} of {len(a):,} elements"
    numbers = [(_number(a[index]), _number(b[index])) for index in apart]
    sizes = [abs(x - y) for x, y in numbers if x is not None and y is not None]
    if finite := [each for each in sizes if math.isfinite(each)]:
        size += f", by at most {max(finite):.3g}"
    return Parting(f".data[{first}]", shown(a[first]), shown(b[first]), size, is_content=True)


def _of_statistics(a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    pairs = ((name, _number(a.get(name)), _number(b.get(name))) for name in ("mean", "norm", "max"))
    return ", ".join(
        f"{name} {x:.6g} and {y:.6g}"
        for name, x, y in pairs
        if x is not None and y is not None and x != y
    )


def _algorithm(digest: str) -> str:
    return digest.partition(":")[0]


def _summary(tensor: Mapping[str, Any]) -> str:
    shape = "x".join(str(each) for each in tensor.get("shape", ())) or "scalar"
    return f"{tensor.get('dtype')} ({shape}) with digest {tensor.get('digest')}"
