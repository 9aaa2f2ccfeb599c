"""Runs a benchmark by its name: `hatch run bench reading --records 100000`."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    """Run the benchmark that the first argument names, with the others as its own."""
    names = sorted(path.stem for path in HERE.glob("*.py") if path != Path(__file__))
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        print(f"usage: bench {{{'|'.join(names)}}} [OPTIONS]", file=sys.stderr)  # noqa: T201
        return 2
    del sys.argv[0]
    runpy.run_path(str(HERE / f"{sys.argv[0]}.py"), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
