"""Traces of TrainCheck 0.x are read as shards of 1.0."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traincheck_trace_schema.codec import dumps, loads, structure_record
from traincheck_trace_schema.errors import TraceError
from traincheck_trace_schema.legacy import migrate, open_processes, source
from traincheck_trace_schema.legacy.conversion import Conversion
from traincheck_trace_schema.legacy.testing import OldThread, OldTrace
from traincheck_trace_schema.reading import StreamItem, open_run, open_runs
from traincheck_trace_schema.reading.form import problem_of_text
from traincheck_trace_schema.validation import validate
from traincheck_trace_schema.window import AFTER_PASS, BEFORE_FIRST_STEP, BEFORE_PASS, window_of

if TYPE_CHECKING:
    from collections.abc import Sequence


@pytest.fixture
def old(tmp_path: Path) -> OldTrace:
    return OldTrace(tmp_path / "old")


def read(folder: Path) -> list[dict[str, Any]]:
    """Return the records of a trace, without headers and footers."""
    items = [item for item in open_run([folder]).stream() if isinstance(item, StreamItem)]
    for item in items:
        validate("trace", item.record)
    return [item.record for item in items if item.record["kind"] not in ("header", "footer")]


def of_kind(records: Sequence[dict[str, Any]], *kinds: str) -> list[dict[str, Any]]:
    return [record for record in records if record["kind"] in kinds]


def places(records: Sequence[dict[str, Any]]) -> list[tuple[int, int, int]]:
    """Return the windows of records, each once."""
    windows = [window_of(record) for record in records]
    return [(one.step, one.eval_pass, one.eval_step) for one in dict.fromkeys(windows)]


# Where in the run


def test_steps_are_moved_to_0(old: OldTrace) -> None:
    """Step 0 of 0.x is before the first, and its step 1 is our step 0."""
    thread = old.thread()
    for step in (0, 1, 2):
        thread.at(step=step)
        thread.state("w", data=step)

    records = read(old.write())

    assert [record["step"] for record in of_kind(records, "var")] == [-1, 0, 1]
    assert [record["step"] for record in of_kind(records, "step")] == [0, 1]


def test_a_stage_begins_where_the_records_say_another(old: OldTrace) -> None:
    """A record of the stage comes before the first that is of it; a name of no stage is none."""
    thread = old.thread()
    for stage in ("init", "training", "training", "lunch", "testing"):
        thread.at(stage=stage)
        with thread.call("f"):
            pass

    stages = of_kind(read(old.write()), "stage")

    assert [record["stage"] for record in stages] == ["training", "testing"]


def test_an_evaluation_step_counts_only_in_a_stage_of_evaluation(old: OldTrace) -> None:
    """0.x goes on telling the last one, and counts on in the next pass."""
    thread = old.thread()
    for meta in (
        {"step": 1, "stage": "training"},
        {"stage": "testing"},
        {"eval_step": 1},
        {"eval_step": 2},
        {"stage": "training"},
        {"stage": "evaluation"},
        {"eval_step": 3},
        {"stage": "training", "step": 2},
    ):
        thread.at(**meta)
        with thread.call("f"):
            pass

    assert places(of_kind(read(old.write()), "call_begin")) == [
        (0, 0, BEFORE_PASS),
        (0, 1, 0),
        (0, 1, 1),
        (0, 1, AFTER_PASS),
        (0, 2, 0),
        (1, 0, BEFORE_PASS),
    ]


def test_a_thread_that_lags_behind_does_not_turn_the_run_back(old: OldTrace) -> None:
    """Its record lies in the step that has begun."""
    ahead, behind = old.thread(tid=70), old.thread(tid=71)
    ahead.at(step=3)
    behind.at(step=2)
    for thread in (ahead, behind, ahead):
        with thread.call("f"):
            pass

    assert {record["step"] for record in of_kind(read(old.write()), "call_begin")} == {2}


def test_steps_that_were_left_out_are_a_gap_of_sampling(old: OldTrace) -> None:
    """It stands in a window of its own; what a variable became in it is no change."""
    thread = old.thread()
    for step, data in ((1, 5), (2, 6), (10, 7), (11, 8)):
        thread.at(step=step)
        thread.state("w", data=data)

    records = read(old.write())

    (gap,) = of_kind(records, "gap")
    assert (gap["step"], gap["reason"], gap["detail"]) == (2, "sampling", "steps 2 to 8")
    events = [record["event"] for record in of_kind(records, "var")]
    assert events == ["baseline", "changed", "baseline", "changed"]


# Calls


def test_calls_nest_by_the_stack_of_their_thread(old: OldTrace) -> None:
    """Another thread has a stack of its own."""
    main, other = old.thread(tid=70), old.thread(tid=71)
    with main.call("a"), other.call("b"), main.call("c"), other.call("d"):
        pass
    with main.call("e"):
        pass

    begins = of_kind(read(old.write()), "call_begin")

    names = {record["id"]: record["function"] for record in begins}
    parents = {names[each["id"]]: names.get(each["parent"]) for each in begins}
    assert parents == {"a": None, "b": None, "c": "a", "d": "b", "e": None}
    assert {record["function"]: record["thread"] for record in begins}["d"] == 1


def test_a_call_whose_end_is_missing_is_left_with_the_one_around_it(old: OldTrace) -> None:
    """What comes after is not taken to be made in it."""
    thread = old.thread()
    with thread.call("outer"), thread.call("lost"):
        pass
    with thread.call("next"):
        pass
    (api,) = old.write().iterdir()
    lines = api.read_text().splitlines(keepends=True)
    api.write_text("".join(line for line in lines if "lost" not in line or "(pre)" in line))

    records = read(old.folder)

    assert [record["function"] for record in of_kind(records, "call_end")] == ["outer", "next"]
    assert of_kind(records, "call_begin")[-1]["parent"] is None


def test_an_end_without_a_begin_is_left_out_and_told(old: OldTrace) -> None:
    """Its function and arguments are not known."""
    thread = old.thread()
    with thread.call("f"):
        pass
    with thread.call("g"):
        pass
    (api,) = old.write().iterdir()
    api.write_text("".join(api.read_text().splitlines(keepends=True)[1:]))
    run = open_run([old.folder])

    kinds = [item.record["kind"] for item in run.stream() if isinstance(item, StreamItem)]

    assert kinds == ["header", "function", "call_begin", "call_end", "footer"]
    assert any("ends of calls whose begin is not in the trace: 1" in note for note in run.notes())


def test_a_call_keeps_object_arguments_and_result(old: OldTrace) -> None:
    """Arguments by position go by their position: 0.x did not write the parameters' names."""
    given = {"0": {"torch.optim.sgd.SGD": {}}, "1": {"int": 3}}
    with old.thread().call(
        "torch.optim.sgd.SGD.step", given, address=99, returns={"float": None}, lr={"float": 0.1}
    ):
        pass

    function, begin, end = read(old.write())

    assert function["name"] == "torch.optim.SGD.step"
    assert begin["self"] == {"object": {"type": "torch.optim.sgd.SGD"}}
    assert begin["args"] == {"1": 3, "lr": 0.1}
    assert end["result"] == {"cut": "float"}


def test_what_was_not_recorded_of_a_call_is_not_there(old: OldTrace) -> None:
    """Selective collection leaves out arguments and result; that is not the same as none."""
    with old.thread().call("f"):
        pass
    (api,) = old.write().iterdir()
    records = [loads(line) for line in api.read_text().splitlines()]
    for record in records:
        for field in ("args", "kwargs", "return_values"):
            record.pop(field, None)
    api.write_text("".join(f"{dumps(record)}\n" for record in records))

    _, begin, end = read(old.folder)

    assert "args" not in begin
    assert "result" not in end


def test_an_exception_ends_a_call(old: OldTrace) -> None:
    """Its class is kept."""
    with old.thread().call("f", raises="StopIteration"):
        pass

    (error,) = of_kind(read(old.write()), "call_error")

    assert error["exception"] == "StopIteration"


def test_an_id_that_is_used_again_is_of_the_innermost_call(old: OldTrace) -> None:
    """Though it was that of one further out, whose end is missing."""
    thread = old.thread()
    with thread.call("lost"), thread.call("middle"), thread.call("again"), thread.call("last"):
        pass
    (api,) = old.write().iterdir()
    lost, middle, again, last, *_ = (loads(line) for line in api.read_text().splitlines())
    again["func_call_id"] = lost["func_call_id"]
    api.write_text("".join(f"{dumps(record)}\n" for record in (lost, middle, again, last)))

    begins = of_kind(read(old.folder), "call_begin")

    names = {record["id"]: record["function"] for record in begins}
    assert [names.get(each["parent"]) for each in begins] == [None, "lost", "middle", "again"]


def test_autocast_that_is_not_enabled_is_no_context(old: OldTrace) -> None:
    """Nothing is cast in it."""
    thread, autocast = old.thread(), "torch.amp.autocast_mode.autocast"
    made: dict[str, Any] = {"device_type": {"str": "cuda"}, "enabled": {"bool": False}}
    with thread.call(f"{autocast}.__init__", address=5, **made):
        pass
    with thread.call(f"{autocast}.__enter__", address=5):
        pass
    with thread.call("g"):
        pass

    begins = of_kind(read(old.write()), "call_begin")

    assert begins[-1]["ctx"] == {"grad_mode": {"cut": "bool"}}


def test_autocast_is_a_context_of_the_calls_in_it(old: OldTrace) -> None:
    """From its constructor, its entering and its leaving; grad mode is said to be unknown."""
    thread, autocast = old.thread(), "torch.amp.autocast_mode.autocast"
    made: dict[str, Any] = {"dtype": {"torch.dtype": "torch.float16"}}
    with thread.call(f"{autocast}.__init__", {"1": {"str": "cuda"}}, address=5, **made):
        pass
    for method in ("f", "__enter__", "g", "__exit__", "h"):
        name, address = (method, None) if len(method) == 1 else (f"{autocast}.{method}", 5)
        with thread.call(name, address=address):
            pass

    begins = of_kind(read(old.write()), "call_begin")

    contexts = {record["function"]: dict(record["ctx"]) for record in begins}
    assert {name: ctx.pop("grad_mode") for name, ctx in contexts.items()}["g"] == {"cut": "bool"}
    assert contexts["g"] == {
        "autocast.device_type": "cuda",
        "autocast.dtype": {"dtype": "float16"},
    }
    assert contexts["f"] == contexts["h"] == {}


# Variables


def test_a_state_that_is_new_is_a_change(old: OldTrace) -> None:
    """The first is told whole, later what is new in it; one that says nothing new is left out."""
    thread = old.thread()
    for data, grad in ((1, None), (1, None), (2, None), (2, 3)):
        thread.state("model.w", data=data, grad=grad)

    first, *others = read(old.write())

    assert first["event"] == "baseline"
    assert first["attributes"]["grad"] is None
    data = first["attributes"]["data"]["tensor"]
    assert data["digest"] == "row0:0000000000000001"
    assert [list(record["attributes"]) for record in others] == [["data"], ["grad"]]
    assert others[0]["between"] == [first["seq"], others[0]["seq"]]


def test_nothing_is_said_to_have_been_observed(old: OldTrace) -> None:
    """0.x dumps what it passes by; a hash of the first row says nothing of the others."""
    thread = old.thread()
    with thread.call("torch.optim.sgd.SGD.step", address=1):
        thread.state("w")

    assert of_kind(read(old.write()), "observe") == []


def test_of_torchs_own_attributes_few_are_kept_of_the_programs_all(old: OldTrace) -> None:
    """Addresses and flags go; marks such as that of Megatron stay."""
    old.thread().state("w", tensor_model_parallel=False, _ML_DAIKON_grad_ID=3, partition_dim=0)

    (told,) = read(old.write())

    assert set(told["attributes"]) == {
        *("data", "grad", "requires_grad"),
        *("tensor_model_parallel", "partition_dim"),
    }


def test_statistics_and_full_data_are_kept_as_such(old: OldTrace) -> None:
    """A null among them is no value."""
    old.thread().state("w", data={"min": -1.0, "max": None, "shape": [2, 3]}, grad=[1.5, None])

    folder = old.write()
    (told,) = read(folder)

    assert told["attributes"]["data"]["tensor"]["statistics"] == {
        "min": -1.0,
        "max": {"cut": "float"},
    }
    assert told["attributes"]["grad"]["tensor"]["data"] == [1.5, {"cut": "float"}]
    assert open_run([folder]).shards[0].header.tensor_format == "stats"


# Processes and files


def test_the_files_of_a_process_are_merged_by_time(old: OldTrace) -> None:
    """Threads, variables, and the log that all processes share."""
    main, other, process8 = old.thread(tid=70), old.thread(tid=71), old.thread(pid=8)
    with main.call("a"):
        main.state("w", proxy=True)
        with other.call("b"):
            process8.state("other", proxy=True)
    main.state("v")

    run = open_run([old.write()])
    items = [item for item in run.stream() if isinstance(item, StreamItem)]

    told = [
        item.record.get("function") or item.record["names"][0]
        for item in items
        if item.process == 0 and item.record["kind"] in ("call_begin", "var", "call_end")
    ]
    assert told == ["a", "w", "b", "b", "a", "v"]
    assert [shard.header.pid for shard in run.shards] == [7, 8]


def test_a_file_whose_time_goes_back_is_read_in_its_own_order(old: OldTrace) -> None:
    """Its records are due when the one before them was: the calls of another thread go on."""
    main, other = old.thread(tid=70), old.thread(tid=71)
    with main.call("a"), other.call("b"), main.call("c"), other.call("d"):
        pass
    folder = old.write()
    for api in folder.iterdir():
        records = [loads(line) for line in api.read_text().splitlines()]
        if api.name.endswith("_71.log"):
            for record in records[1:]:
                record["time"] = 1
        api.write_text("".join(f"{dumps(record)}\n" for record in records))

    begins = of_kind(read(folder), "call_begin", "call_end")

    order = [(record["kind"][5:], record["function"]) for record in begins]
    assert order.index(("begin", "a")) < order.index(("begin", "b")) < order.index(("end", "d"))
    assert order[:2] == [("begin", "a"), ("begin", "b")]


def test_a_compressed_trace_reads_the_same(old: OldTrace) -> None:
    """The names of its files end in `.gz`."""
    thread = old.thread()
    with thread.call("f"):
        thread.state("w")
    plain = read(old.write())
    shutil.rmtree(old.folder)

    assert read(old.write(compressed=True)) == plain


def trainer(old: OldTrace, pid: int, **meta_vars: Any) -> OldThread:
    """Add a process that tracks variables."""
    thread = old.thread(pid)
    thread.at(**meta_vars)
    thread.state("w")
    return thread


def ranks(folder: Path) -> dict[int, tuple[str, int, int]]:
    """Return role, rank and world size of each process."""
    headers = [shard.header for shard in open_run([folder]).shards]
    return {each.pid: (each.role, each.rank, each.world_size) for each in headers}


def test_a_rank_in_meta_vars_is_the_rank(old: OldTrace) -> None:
    """Also as a text; a process without one, though it tracks variables, is no rank."""
    trainer(old, 7, _DATA_PARALLEL_RANK="1")
    trainer(old, 8, _DATA_PARALLEL_RANK=0)
    trainer(old, 9)

    assert ranks(old.write()) == {7: ("main", 1, 2), 8: ("main", 0, 2), 9: ("worker", 0, 2)}


def test_the_process_group_tells_rank_and_world_size(old: OldTrace) -> None:
    """Ranks that left no trace are then known to be missing."""
    init = "torch.distributed.distributed_c10d.init_process_group"
    with old.thread(7).call(init, rank={"int": 1}, world_size={"int": 4}):
        pass
    folder = old.write()
    run = open_run([folder])
    list(run.stream())

    assert ranks(folder) == {7: ("main", 1, 4)}
    assert "ranks 0, 2, 3 of 4 left no trace" in run.incomplete_because()


def test_without_ranks_those_that_train_are_ranks_by_process_id(old: OldTrace) -> None:
    """One that only calls functions is a worker."""
    trainer(old, 12)
    trainer(old, 11)
    with old.thread(10).call("f"):
        pass

    assert ranks(old.write()) == {
        11: ("main", 0, 2),
        12: ("main", 1, 2),
        10: ("worker", 0, 2),
    }


def test_a_rank_beyond_the_world_is_not_believed(old: OldTrace) -> None:
    """There is no world of one with two ranks."""
    init = "torch.distributed.distributed_c10d.init_process_group"
    with old.thread(7).call(init, rank={"int": 1}, world_size={"int": 1}):
        pass

    assert ranks(old.write()) == {7: ("main", 0, 1)}


def test_processes_that_share_a_data_parallel_rank_are_told_apart(old: OldTrace) -> None:
    """With tensor parallelism beside it, it is not the rank."""
    for pid in (7, 8):
        trainer(old, pid, _DATA_PARALLEL_RANK=0)

    assert {rank for _, rank, _ in ranks(old.write()).values()} == {0, 1}


@pytest.mark.parametrize(
    ("options", "tracker"),
    [
        ({}, "sampler"),
        ({"mode": "update"}, "subclass"),
        ({"proxy": True}, "proxy"),
    ],
)
def test_the_tracker_is_known_by_its_records(
    old: OldTrace, options: dict[str, Any], tracker: str
) -> None:
    """The sampler writes no mode; the proxy has a file of its own."""
    old.thread().state("w", **options)

    assert open_run([old.write()]).shards[0].header.tracker == tracker


def test_the_run_id_depends_on_the_content_only(old: OldTrace, tmp_path: Path) -> None:
    """A copy elsewhere is the same run, another trace is another."""
    trainer(old, 7)
    folder = old.write()
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    other = OldTrace(tmp_path / "other")
    trainer(other, 8)

    ids = [run.run_id for run in open_runs([folder, other.write()])]

    assert open_run([copy]).run_id == ids[0] != ids[1]


def test_traces_of_one_size_are_not_one_run(old: OldTrace) -> None:
    """Their content tells them apart."""
    trainer(old, 7)
    (states,) = old.write().iterdir()
    before = open_run([old.folder]).run_id
    states.write_bytes(states.read_bytes().replace(b'"w"', b'"v"'))

    assert open_run([old.folder]).run_id != before


def test_a_trace_that_is_whole_is_not_called_incomplete(old: OldTrace) -> None:
    """0.x has no mark of completeness; that no call was left open is taken for it."""
    with old.thread().call("f"):
        pass
    run = open_run([old.write()])
    list(run.stream())

    assert run.incomplete_because() == ()
    assert any("is a trace of TrainCheck 0.x" in note for note in run.notes())


def test_a_file_that_is_cut_makes_the_trace_incomplete(old: OldTrace) -> None:
    """It is read up to there; the file and the line are told."""
    with old.thread().call("f"):
        pass
    (api,) = old.write().iterdir()
    api.write_bytes(api.read_bytes()[:-9])
    run = open_run([old.folder])

    kinds = [item.record["kind"] for item in run.stream() if isinstance(item, StreamItem)]

    assert kinds == ["header", "function", "call_begin", "gap"]
    assert any(f"{api}:2: the last line is cut" in note for note in run.notes())
    assert any("did not end cleanly" in reason for reason in run.incomplete_because())


def test_a_cut_file_of_variables_makes_it_incomplete_too(old: OldTrace) -> None:
    """Though all calls have their ends, and it has no whole record."""
    thread = old.thread()
    thread.state("w")
    with thread.call("f"):
        pass
    states = old.write() / "trace_VAR_7_70.log"
    states.write_bytes(states.read_bytes()[:-9])
    run = open_run([old.folder])
    list(run.stream())

    assert any("did not end cleanly" in reason for reason in run.incomplete_because())
    assert any(f"{states}:1: the last line is cut" in note for note in run.notes())


def test_a_call_that_the_first_thread_left_open_makes_it_incomplete(old: OldTrace) -> None:
    """The process was killed; a call of another thread may wait for ever in a healthy one."""
    main, other = old.thread(tid=70), old.thread(tid=71)
    with main.call("f"), other.call("wait"):
        pass
    folder = old.write()

    def without_end(tid: int) -> list[str]:
        api = folder / f"trace_API_7_{tid}.log"
        lines = api.read_text().splitlines(keepends=True)
        api.write_text("".join(lines[:1]))
        run = open_run([folder])
        list(run.stream())
        return list(run.incomplete_because())

    assert without_end(71) == []
    assert len(without_end(70)) == 1


def test_a_last_line_that_only_lacks_its_end_is_read(old: OldTrace) -> None:
    """Some files of 0.x end so."""
    with old.thread().call("f"):
        pass
    (api,) = old.write().iterdir()
    api.write_bytes(api.read_bytes().removesuffix(b"\n"))

    assert len(read(old.folder)) == 3


def test_lines_that_are_no_records_are_skipped_and_told(old: OldTrace) -> None:
    """What is valid is still read."""
    with old.thread().call("f"):
        pass
    (api,) = old.write().iterdir()
    first, second = api.read_bytes().splitlines(keepends=True)
    bad = b'{"type":"state_change","process_id":7}\n' + b"[" * 5000 + b"\n\xff\n"
    api.write_bytes(first + bad + second)
    run = open_run([old.folder])

    kinds = [item.record["kind"] for item in run.stream() if isinstance(item, StreamItem)]

    assert kinds == ["header", "function", "call_begin", "gap", "call_end", "footer"]
    assert any("lines that are no records: 3" in reason for reason in run.incomplete_because())
    assert any(f"{api}:2: skipped" in note for note in run.notes())


def test_what_is_lost_is_told_of_the_file_that_lost_it(old: OldTrace) -> None:
    """A process has several files."""
    thread = old.thread()
    with thread.call("f"):
        thread.state("w")
    folder = old.write()
    states = folder / "trace_VAR_7_70.log"
    states.write_bytes(states.read_bytes() + b"garbage\n" * 9)
    run = open_run([folder])
    list(run.stream())

    assert run.incomplete_because() == ("trace_VAR_7_70.log: lines that are no records: 9",)
    assert f"{states}: 4 more lines were skipped, they are no records" in run.notes()


def test_a_variable_begins_anew_behind_lines_that_were_lost(old: OldTrace) -> None:
    """What it became meanwhile is no change that was seen."""
    thread = old.thread()
    for data in (1, 2):
        thread.state("w", data=data)
    (states,) = old.write().iterdir()
    first, second = states.read_bytes().splitlines(keepends=True)
    states.write_bytes(first + b"garbage\n" + second)

    records = read(old.folder)

    assert [record.get("event", record["kind"]) for record in records] == [
        "baseline",
        "gap",
        "baseline",
    ]


def test_a_file_of_nothing_but_garbage_is_given_up(
    old: OldTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be compressed, and unpack to billions of lines."""
    with old.thread().call("f"):
        pass
    (api,) = old.write().iterdir()
    api.write_bytes(api.read_bytes() + b"x\n" * 100_000 + api.read_bytes())
    monkeypatch.setattr(source, "_MOST_BARREN", 20_000)
    run = open_run([old.folder])

    kinds = [item.record["kind"] for item in run.stream() if isinstance(item, StreamItem)]

    assert kinds.count("call_begin") == 1
    assert f"{api.name}: was not read to its end" in run.incomplete_because()


@pytest.mark.parametrize("nothing", [gzip.compress(b"") * 30_000, gzip.compress(b"\n" * 300_000)])
def test_a_file_that_goes_on_with_nothing_is_given_up(
    old: OldTrace, monkeypatch: pytest.MonkeyPatch, nothing: bytes
) -> None:
    """Empty lines and empty compressed pieces take time, and there may be billions."""
    with old.thread().call("f"):
        pass
    old.write(compressed=True)
    (api,) = old.folder.iterdir()
    api.write_bytes(api.read_bytes() + nothing)
    monkeypatch.setattr(source, "_MOST_BARREN", 100_000)
    run = open_run([old.folder])
    list(run.stream())

    assert run.incomplete_because() == (f"{api.name}: was not read to its end",)


def test_strict_reading_refuses_a_line_that_is_no_record(old: OldTrace) -> None:
    """The message names file and line."""
    with old.thread().call("f"):
        pass
    (api,) = old.write().iterdir()
    api.write_bytes(api.read_bytes() + b"{}\n")
    run = open_run([old.folder], strict=True)

    with pytest.raises(TraceError, match=r"trace_API_7_70.log:3: is no record of TrainCheck 0.x"):
        list(run.stream())


@pytest.fixture
def beside_1_0(tmp_path: Path) -> Path:
    """Return a folder with a sound shard of version 1.0."""
    trace = OldTrace(tmp_path / "sound")
    with trace.thread(5).call("f"):
        pass
    migrate(trace.write(), tmp_path / "trace")
    return tmp_path / "trace"


@pytest.mark.parametrize("is_strict", [False, True])
def test_an_old_file_that_is_cut_in_its_first_line_is_not_passed_over(
    beside_1_0: Path, *, is_strict: bool
) -> None:
    """Beside a shard that is sound; the run lacks what it held."""
    (beside_1_0 / "trace_API_7_70.log").write_text('{"func_call_id":"a_1","thr')

    run = open_run([beside_1_0], strict=is_strict)
    list(run.stream())

    assert run.incomplete_because() == ("trace_API_7_70.log: ends within its header",)


def test_an_old_file_whose_lines_are_all_refused_is_not_passed_over(beside_1_0: Path) -> None:
    """It is told with the reason, and refused if reading is strict or it was named."""
    bad = beside_1_0 / "trace_API_7_70.log"
    bad.write_text('{"process_id":3,"type":"state_change"}\n')
    why = r"trace_API_7_70.log:1: is no record of TrainCheck 0.x"

    run = open_run([beside_1_0])
    list(run.stream())

    assert run.incomplete_because() == ("trace_API_7_70.log: cannot be read",)
    assert any("is no record of TrainCheck 0.x" in note for note in run.notes())
    with pytest.raises(TraceError, match=why):
        open_run([beside_1_0], strict=True)
    with pytest.raises(TraceError, match=why):
        open_run([bad])


def test_old_files_whose_lines_are_all_refused_did_not_end_too_early(tmp_path: Path) -> None:
    """The message says what is wrong with the first."""
    (tmp_path / "trace_API_7_70.log").write_text('{"process_id":3,"type":"state_change"}\n')

    with pytest.raises(TraceError, match=r"trace_API_7_70.log:1: is no record of TrainCheck 0.x"):
        open_run([tmp_path])


@pytest.mark.parametrize("field", ["args", "return_values", "exception"])
def test_values_that_are_nested_very_deep_are_cut(old: OldTrace, field: str) -> None:
    """They are read, and what is written of them is valid: readers have a limit."""
    with old.thread().call("f", raises="E" if field == "exception" else None):
        pass
    (api,) = old.write().iterdir()
    deep = "[" * 1000 + "]" * 1000
    lines = [loads(line) for line in api.read_text().splitlines()]
    at = 0 if field == "args" else 1
    lines[at][field] = {"0": "DEEP"} if field == "args" else "DEEP"
    api.write_text("".join(dumps(each) + "\n" for each in lines).replace('"DEEP"', deep))

    records = read(old.folder)

    assert len(records) == 3
    for record in records:
        assert problem_of_text(dumps(record).encode(), record) == ""


def test_files_without_a_record_are_no_process(tmp_path: Path) -> None:
    """A program that ended too early leaves them."""
    (tmp_path / "trace_API_7_70.log").touch()

    assert open_processes([tmp_path / "trace_API_7_70.log"]) == []
    with pytest.raises(TraceError, match="has no records"):
        open_run([tmp_path])


# Any records at all

TEXTS = st.text(max_size=5)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
TYPE_NAMES = st.sampled_from(
    [
        *("NoneType", "bool", "int", "float", "str", "list", "tuple", "set", "dict", "a.b.C"),
        *("torch.Size", "torch.device", "torch.dtype", "torch.FloatTensor", "torch.nn.Parameter"),
    ]
)
TENSOR_FIELDS = st.fixed_dictionaries(
    {"shape": JSON | st.lists(st.integers(-1, 3)), "dtype": JSON | st.just("torch.float32")},
    optional={"data": JSON, "grad": JSON, "requires_grad": JSON, "is_cuda": JSON, "mark": JSON},
)
TYPED = st.dictionaries(TYPE_NAMES, JSON | TENSOR_FIELDS, min_size=1, max_size=1) | JSON
META_VARS = st.fixed_dictionaries(
    {},
    optional={
        "step": st.integers(-2, 6) | JSON,
        "eval_step": st.integers(-2, 6) | JSON,
        "stage": st.sampled_from(["init", "training", "testing", "evaluation"]) | JSON,
        "_DATA_PARALLEL_RANK": JSON,
    },
)
PLACE = {
    "process_id": st.integers(1, 2),
    "thread_id": st.integers(1, 3),
    "time": st.integers(0, 9),
    "meta_vars": META_VARS,
}
CALLS = st.fixed_dictionaries(
    {
        **PLACE,
        "type": st.sampled_from(
            ["function_call (pre)", "function_call (post)", "function_call (post) (exception)"]
        ),
        "func_call_id": st.sampled_from("abcd"),
        "function": st.sampled_from(
            [
                "f",
                "torch.optim.sgd.SGD.step",
                *(f"torch.amp.autocast_mode.autocast.__{m}__" for m in ("init", "enter", "exit")),
            ]
        ),
    },
    optional={
        "args": st.dictionaries(st.sampled_from("0123"), TYPED, max_size=3),
        "kwargs": st.dictionaries(TEXTS | st.just("dtype"), TYPED, max_size=2),
        "return_values": TYPED | st.lists(TYPED, max_size=2),
        "exception": JSON,
        "exception_msg": JSON,
        "is_bound_method": JSON,
        "obj_id": st.integers(1, 3) | JSON,
    },
)
STATES = st.fixed_dictionaries(
    {
        **PLACE,
        "type": st.just("state_change"),
        "var_name": st.sampled_from(["w", "v.0"]),
        "var_type": st.sampled_from(["torch.nn.Parameter", "Parameter", "torch.FloatTensor"]),
        "attributes": TENSOR_FIELDS,
    }
)


@given(raws=st.lists(CALLS | STATES, max_size=12))
@settings(max_examples=150, deadline=None)
def test_any_stream_of_records_converts_to_valid_ones(raws: list[dict[str, Any]]) -> None:
    """`seq` rises, windows never go backwards, and schema, class and JSON accept each record."""
    conversion, window, last = Conversion(), BEFORE_FIRST_STEP, -1
    for raw in raws:
        for record in conversion.convert(raw):
            validate("trace", loads(dumps(record)))
            structure_record(record)
            assert record["seq"] == last + 1
            assert window_of(record) >= window
            last, window = record["seq"], window_of(record)
    validate("trace", conversion.footer())


@given(raws=st.lists(CALLS | STATES | JSON, min_size=1, max_size=6), cut=st.integers(0, 9))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_files_are_read_without_a_fault(
    tmp_path: Path, raws: list[dict[str, Any]], cut: int
) -> None:
    """Whatever their lines say, the stream comes to its end, or it is said what is wrong."""
    import json  # noqa: PLC0415  it writes what ujson refuses: NaN, and integers of any size

    folder = tmp_path / "any"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    lines = "\n".join(map(json.dumps, raws)).encode()
    for name in ("trace_API_1_1.log", "proxy_log.json"):
        (folder / name).write_bytes(lines[: len(lines) - cut])

    try:
        run = open_run([folder])
    except TraceError:
        return
    for item in run.stream():
        if isinstance(item, StreamItem):
            validate("trace", item.record)
