"""What the documentation shows is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from traincheck_trace_schema.codec import loads, structure_record
from traincheck_trace_schema.records import TraceRecord
from traincheck_trace_schema.validation import validate

PAGE = (Path(__file__).parents[1] / "docs" / "trace.md").read_text("utf-8")


def test_each_kind_of_record_has_a_valid_example() -> None:
    """The examples of the page validate, can be read, and leave no kind out."""
    blocks = re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL)
    records = [loads(line) for block in blocks for line in block.splitlines()]

    for record in records:
        validate("trace", record)
        structure_record(record)

    assert {record["kind"] for record in records} == {cls.kind for cls in get_args(TraceRecord)}


def test_each_encoding_of_a_value_has_a_valid_example() -> None:
    """The table of values shows what the schema accepts."""
    _, _, section = PAGE.partition("## Values")
    values = [loads(text) for text in re.findall(r"`(\{.*?\})`", section)]

    for value in values:
        validate(
            "trace",
            {"kind": "call_end", "thread": 1, "seq": 1, "step": 0, "id": 1, "function": "f"}
            | {"result": value},
        )

    assert {key for value in values for key in value} >= {"tensor", "object", "dict", "cut", "int"}
