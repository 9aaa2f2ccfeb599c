"""Versions of documents: which ones this package reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from traincheck_trace_schema.constraints import shown

if TYPE_CHECKING:
    from traincheck_trace_schema.errors import TraincheckError

_VERSION = re.compile(r"([0-9]{1,9})\.[0-9]+")
_MIGRATE = "migrate it with: traincheck-schema migrate IN OUT"
_UPDATE = (
    "update TrainCheck to read it: pip install --upgrade traincheck-trace-schema; older files are "
    "then moved on with: traincheck-schema migrate IN OUT"
)


def check_version(
    document: Any, *, schema: str, known: str, where: str, error: type[TraincheckError]
) -> None:
    """Refuse a document of another schema or of another major version than `known`.

    Raises:
        TraincheckError: of the class `error`; the message says what was read and what is known.
    """
    name = document.get("schema") if isinstance(document, dict) else document
    if isinstance(document, dict) and "schema" not in document:
        raise error(f"{where}: field 'schema' is missing; it must be {schema!r}")
    if name != schema:
        raise error(f"{where}: field 'schema' must be {schema!r}, got {shown(name)}")
    if "version" not in document:
        raise error(f"{where}: field 'version' is missing; it is a text like {known!r}")
    version = document["version"]
    parts = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if parts is None:
        raise error(f"{where}: field 'version' must be a text like {known!r}, got {shown(version)}")
    major, _, _ = known.partition(".")
    if parts[1] != major:
        help_ = _MIGRATE if int(parts[1]) < int(major) else _UPDATE
        raise error(
            f"{where}: is {schema} version {version}, and this TrainCheck knows version {major}.x; "
            f"{help_}"
        )


def is_newer(version: str, known: str) -> bool:
    """Whether a version of the known major has a minor that is not known."""
    return int(version.partition(".")[2]) > int(known.partition(".")[2])
