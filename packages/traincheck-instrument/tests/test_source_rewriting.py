"""What the rewritten program is: marks in their places, and nothing else changed."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap

import pytest

from traincheck_instrument.source import rewrite
from traincheck_trace_schema.errors import ConfigError

IMPORT = "import traincheck_instrument as __traincheck__"


def text(script: str, *models: str) -> str:
    return rewrite(textwrap.dedent(script).lstrip(), "train.py", models).text()


def test_marks_stand_first_in_the_loops():
    """A training loop gets start_step, an evaluation loop start_eval_step and its block."""
    script = """
        def evaluate(model):
            for x in loader:
                model(x)
        for i, x in enumerate(loader):
            if i % 2:
                optimizer.step()
        """

    assert text(script).endswith(
        textwrap.dedent(
            f"""
            {IMPORT}

            def evaluate(model):
                with __traincheck__.evaluation():
                    for x in loader:
                        __traincheck__.start_eval_step()
                        model(x)
            for i, x in enumerate(loader):
                __traincheck__.start_step(accumulating=True)
                if i % 2:
                    optimizer.step()
            """
        )[1:]
    )


GUARDED = {
    "the end of the run": "if step >= last:\n    break",
    "one after another": "if stop.is_set():\n    break\nif time.time() > limit:\n    return",
    "what is done at the end": "if stop.is_set():\n    save(model)\n    evaluate(model)\n    break",
    "a batch that is fetched": "batch = next(batches, None)\nif batch is None:\n    break",
    "a batch that is missing": "try:\n    x = next(it)\nexcept StopIteration:\n    break",
    "a batch that was trained on before": "step += 1\nif step <= resumed:\n    continue",
}
WORKING = {
    "a result": "out = model(batch)\nif out is None:\n    break",
    "a method": "if self.is_bad(batch):\n    continue",
    "a function of the script": "if own(batch):\n    break",
    "torch": "x = torch.cat(batch)\nif len(x) == 0:\n    continue",
    "an optimizer": "optimizer.zero_grad()\nif done:\n    break",
    "a loop": "for x in batch:\n    print(x)\nif done:\n    break",
    "no guard": "step += 1\nprint(step)",
    "a step of another kind": "if trainer.train_step(batch):\n    break",
}


@pytest.mark.parametrize(
    ("head", "is_after"),
    [
        *(pytest.param(head, True, id=name) for name, head in GUARDED.items()),
        *(pytest.param(head, False, id=name) for name, head in WORKING.items()),
    ],
)
def test_a_pass_begins_after_the_guards_before_its_work(head, is_after):
    """A pass that ends the loop, or is skipped, before it does anything is no step."""
    rest = "loss(batch).backward()\noptimizer.step()"
    body = textwrap.indent(f"{head}\n{rest}", " " * 8)
    script = f"import time, torch\ndef own(x): ...\ndef fit(self):\n    while True:\n{body}\n"

    lines = [line.strip() for line in rewrite(script, "train.py", []).text().splitlines()]

    mark = lines.index("__traincheck__.start_step()")
    assert lines[mark + 1].startswith("loss(batch)") is is_after
    assert lines[mark - 1].startswith("while") is not is_after


@pytest.mark.parametrize(
    ("statement", "is_marked"),
    [
        ("model.train()", True),
        ("model.train(True)", True),
        ("model.train(mode=True)", True),
        ("model.train(False)", False),
        ("model.train(mode)", False),
        ("x = model.train()", False),
        ("trainer.train()", False),
        ("t = transformers.Trainer(model)\nt.train()", False),
        ("t = Net()\nt.train()", True),
    ],
)
def test_training_mode_is_a_stage(statement, is_marked):
    """After a statement that puts a model into training mode the stage is training."""
    assert ("annotate_stage('training')" in text(statement)) is is_marked


def test_the_train_method_of_a_trainer_is_no_stage():
    """`self.train()` of a class that is no module runs the training; it sets no mode."""
    script = """
        class Job:
            def train(self):
                pass
            def main(self):
                self.train()
        Job().train()
        """

    assert "annotate_stage" not in text(script)


@pytest.mark.parametrize(
    "head",
    [
        "",
        '"""Doc."""\n',
        "from __future__ import annotations\n",
        '"""Doc."""\nfrom __future__ import annotations\nfrom __future__ import division\n',
    ],
)
def test_docstring_and_future_imports_stay_first(head):
    """The import of the marks comes after both, so that both keep their meaning."""
    rewritten = rewrite(head + "x = 1\n", "train.py", [])

    body = rewritten.tree.body
    names: dict[str, object] = {}
    exec(rewritten.code(), names)  # noqa: S102  our own text
    assert ast.unparse(body[-2]) == IMPORT
    assert names.get("__doc__") == ("Doc." if "Doc" in head else None)


def test_an_empty_script_stays_one():
    """Nothing to mark, nothing to fail on."""
    rewrite("", "train.py", []).code()
    rewrite('"""Doc."""', "train.py", []).code()


def test_the_encoding_line_is_followed():
    """A script in Latin-1 that says so keeps its text."""
    source = "# -*- coding: latin-1 -*-\nname = 'café'\n".encode("latin-1")

    names: dict[str, object] = {}
    exec(rewrite(source, "train.py", []).code(), names)  # noqa: S102  our own text

    assert names["name"] == "café"


def test_decorators_stay_with_their_functions():
    """A decorated function with a marked loop is still decorated."""
    script = """
        @first
        @second(1)
        def train():
            for x in y:
                optimizer.step()
        """

    assert "@first\n@second(1)\ndef train():\n    for x in y:\n        __traincheck__" in text(
        script
    )


def test_a_syntax_error_is_told_with_its_line():
    """The parser's own message, where it is, in one line."""
    with pytest.raises(ConfigError, match=r"^train\.py:2: SyntaxError: .+$"):
        rewrite("x = 1\nfor x in\n", "train.py", [])


def test_a_binary_file_is_no_python():
    """Bytes that can't be a script are refused, not crashed on."""
    with pytest.raises(ConfigError, match=r"^train\.py"):
        rewrite(b"\x00\x01", "train.py", [])
    with pytest.raises(ConfigError, match=r"^train\.py"):
        rewrite(b"\xff\xfe\xfa", "train.py", [])


@pytest.mark.parametrize(
    ("call", "absent"),
    [
        ("tc.start_step()", "start_step()"),
        ("tc.start_eval_step()", "start_eval_step()"),
        ("tc.annotate_stage('init')", "annotate_stage("),
        ("tc.track(model)", "track(model, name"),
        ("@tc.training_step\n        def f(): pass", "start_step()"),
        ("with tc.evaluation(): pass", "evaluation()"),
    ],
)
def test_what_is_marked_by_hand_is_not_marked_twice(call, absent):
    """A script that calls one of our functions keeps that to itself; the others are put in."""
    script = f"""
        import traincheck_instrument as tc
        {call}
        model = Net()
        model.train()
        for x in loader:
            optimizer.step()
        model.eval()
        for x in loader:
            model(x)
        """

    inserted = [line for line in text(script).splitlines() if "__traincheck__." in line]

    assert not [line for line in inserted if absent in line]
    assert len(inserted) >= 2


def test_names_imported_from_the_package_count_as_by_hand():
    """`from traincheck_instrument import start_step as mark` is found too."""
    script = "from traincheck_instrument import start_step as mark\nmark()\n"

    assert rewrite(script, "train.py", []).findings.by_hand == {"start_step"}


def test_line_numbers_in_tracebacks_are_the_users(tmp_path):
    """An exception in a marked loop shows the same traceback as without the marks."""
    path = tmp_path / "train.py"
    path.write_text(
        "model = object()\n"
        "class optimizer:\n"
        "    step = lambda: None\n"
        "for x in [1]:\n"
        "    optimizer.step()\n"
        "    model.missing\n"
    )
    run = "import sys; p = sys.argv[1]; source = open(p).read()\n"
    plain = run + "exec(compile(source, p, 'exec'))"
    marked = (
        run + "from traincheck_instrument.source import rewrite\n"
        "class module:\n"
        "    start_step = lambda: None\n"
        "    track = lambda value, **_: value\n"
        "sys.modules['traincheck_instrument'] = module\n"
        "exec(rewrite(source, p, ['model']).code())"
    )

    shown = [
        subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
        ).stderr.partition(f'  File "{path}"')[2]
        for code in (plain, marked)
    ]

    assert "line 6" in shown[0]
    assert shown[0] == shown[1]


def test_reading_a_script_imports_no_torch():
    """The launcher reads scripts on machines where importing torch takes seconds."""
    code = "import sys, traincheck_instrument.source; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "deep",
    [" + ".join(["one"] * 600), "one" + ".real.__pos__()" * 400],
    ids=["a long sum", "a long chain"],
)
def test_a_deep_expression_is_read_like_any_other(deep):
    """What Python itself runs is marked, compiled and shown; the recursion limit is restored."""
    limit = sys.getrecursionlimit()
    script = f"one = 1\nx = {deep}\nmodel = Net()\nfor y in z:\n    optimizer.step()\n"

    rewritten = rewrite(script, "train.py", ["model"])

    assert len(rewritten.findings.loops) == len(rewritten.findings.tracked) == 1
    assert "start_step()" in rewritten.text()
    rewritten.code()
    assert sys.getrecursionlimit() == limit


def give_up(*_: object) -> None:
    """Stand for what needs more stack than there is."""
    raise RecursionError


def test_a_script_that_cannot_be_shown_is_shown_as_it_stands(monkeypatch):
    """The user's own text takes the place of the rewritten one, and the header says so."""
    script = "# café\nfor x in y:\n    optimizer.step()\n"
    rewritten = rewrite(script.encode(), "train.py", [])
    monkeypatch.setattr(ast, "unparse", give_up)

    text = rewritten.text()

    assert text.endswith(script)
    assert "cannot be shown with its marks" in text.splitlines()[0]


def test_a_script_that_the_parser_cannot_take_has_no_marks():
    """Nothing is found, and that is said; nothing is raised, and the script is still shown."""
    script = "x = " + "-" * 20000 + "1\nfor y in z:\n    optimizer.step()\n"

    rewritten = rewrite(script, "train.py", ["model"])

    assert rewritten.findings.is_too_deep
    assert not rewritten.findings.loops
    assert rewritten.text().endswith(script)


def test_a_script_that_the_analysis_cannot_take_runs_without_marks(monkeypatch):
    """What can be compiled is, although the analysis ran out of stack."""
    monkeypatch.setattr("traincheck_instrument.source.rewriting.Meanings", give_up)
    rewritten = rewrite("x = 1\n", "train.py", [])

    names: dict[str, object] = {}
    exec(rewritten.code(), names)  # noqa: S102  our own text

    assert rewritten.findings.is_too_deep
    assert names["x"] == 1
    assert "__traincheck__" not in names
