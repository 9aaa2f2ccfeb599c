"""Output that is passed on."""

import os
import time
from threading import Thread

from traincheck_launcher.running.tee import Tee


def test_a_slow_reader_gets_everything(tmp_path):
    """The end of the output is not given up because its reader pauses longer than the timeout."""
    source, program = os.pipe()
    reader, stream = os.pipe()
    text = b"x" * 300_000
    received = bytearray()

    def read_slowly():
        time.sleep(0.5)
        while data := os.read(reader, 65536):
            received.extend(data)

    slow = Thread(target=read_slowly)
    slow.start()
    with (tmp_path / "log").open("wb", buffering=0) as log:
        tee = Tee(os.fdopen(source, "rb", buffering=0), stream, log.fileno())
        writer = Thread(target=lambda: (os.write(program, text), os.close(program)))
        writer.start()
        tee.finish(0.05)
    os.close(stream)
    slow.join()

    assert bytes(received) == text
    assert (tmp_path / "log").read_bytes() == text


def test_a_pipe_that_another_process_holds_is_left_to_it(tmp_path):
    """Nothing comes any more, and the pipe does not end: waiting ends."""
    source, program = os.pipe()
    with (tmp_path / "log").open("wb", buffering=0) as log:
        tee = Tee(
            os.fdopen(source, "rb", buffering=0), os.open(os.devnull, os.O_WRONLY), log.fileno()
        )
        os.write(program, b"the end")
        tee.finish(0.1)

        assert (tmp_path / "log").read_bytes() == b"the end"
    os.close(program)
