"""Plan files: one instrumentation plan, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincheck_trace_schema.codec import content_id, structure, unstructure
from traincheck_trace_schema.errors import ConfigError
from traincheck_trace_schema.files import read_json, write_json
from traincheck_trace_schema.plan import SCHEMA, VERSION, Plan
from traincheck_trace_schema.version import check_version

if TYPE_CHECKING:
    from pathlib import Path


def read_plan(path: Path) -> Plan:
    """Read a plan.

    Raises:
        ConfigError: the file cannot be read, or is no plan.
    """
    document = read_json(path, error=ConfigError)
    check_version(document, schema=SCHEMA, known=VERSION, where=str(path), error=ConfigError)
    return structure(Plan, document, where=str(path), error=ConfigError)


def write_plan(path: Path, plan: Plan) -> None:
    """Write a plan."""
    write_json(path, plan)


def plan_id(plan: Plan) -> str:
    """Return the id that a plan of this content has, whatever its id is now."""
    content = unstructure(plan)
    del content["id"]
    return content_id(content)
