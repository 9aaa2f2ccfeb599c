"""Holds documents and whole files against their JSON Schemas and the rules beyond these.

Needs jsonschema-rs: `pip install 'traincheck-trace-schema[validate]'`.
"""

from __future__ import annotations

from traincheck_trace_schema.validation.check import FileCheck
from traincheck_trace_schema.validation.finding import Finding
from traincheck_trace_schema.validation.folder import documents_in
from traincheck_trace_schema.validation.run import RunRules, ShardFacts
from traincheck_trace_schema.validation.schema import (
    DOCUMENTS,
    load_schema,
    schema_text,
    validate,
    versions_of,
)

__all__ = [
    "DOCUMENTS",
    "FileCheck",
    "Finding",
    "RunRules",
    "ShardFacts",
    "documents_in",
    "load_schema",
    "schema_text",
    "validate",
    "versions_of",
]
