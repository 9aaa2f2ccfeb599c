"""The folder of this package, as code objects name the files in it. Imports no torch."""

import os

HOME = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")  # noqa: PTH100, PTH118, PTH120  as in code objects
