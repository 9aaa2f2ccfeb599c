"""Programs of several processes and threads, and their endings, are what they are without us."""

import pytest

TRACKERS = ("subclass", "proxy", "sampler")

# What each of them computes is printed by the main process, in a fixed order.
FAMILY = """
import hashlib
import multiprocessing
import os
import random
import sys
import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 12
    def __getitem__(self, index):
        return torch.full((4,), float(index)) + torch.rand(4) + random.random()

def train(batches):
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in batches:
        optimizer.zero_grad()
        model(batch).pow(2).mean().backward()
        optimizer.step()
    content = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    return hashlib.sha256(content).hexdigest()

def train_alone(seed):
    torch.manual_seed(seed)
    return train(torch.rand(3, 2, 4))

def child(seed, queue):
    torch.set_num_threads(1)
    queue.put((train_alone(seed), os.path.basename(sys.argv[0]), __name__, __file__))
    if seed == 2:
        sys.exit(9)

def in_child(method):
    context = multiprocessing.get_context(method)
    queue = context.SimpleQueue()
    process = context.Process(target=child, args=(2, queue))
    process.start()
    told = queue.get()
    process.join()
    return (*told, process.exitcode)

def in_thread():
    told = []
    thread = threading.Thread(target=lambda: told.append(train_alone(3)))
    thread.start()
    thread.join()
    return told

def in_forked():
    pid = os.fork()
    if pid == 0:
        code = int(train_alone(4), 16) % 200
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def with_workers(num_workers=2, **options):
    torch.manual_seed(5)
    random.seed(5)
    loader = DataLoader(Numbers(), 4, num_workers=num_workers, shuffle=True, **options)
    return [train(loader) for epoch in range(2)]

def main():
    torch.set_num_threads(1)
    print("alone", train_alone(1))
    print("thread", in_thread())
    print("os.fork", in_forked())
    for method in ("fork", "spawn", "forkserver"):
        print(method, in_child(method))
    print("workers", with_workers())
    print("persistent workers", with_workers(persistent_workers=True))
    print("spawned workers", with_workers(
        1, multiprocessing_context="spawn", persistent_workers=True))
    torch.manual_seed(6)
    print("at the end", train(torch.rand(3, 2, 4)), torch.rand(1).item(), random.random())
    sys.stdout.flush()
    os._exit(17)

if __name__ == "__main__":
    main()
"""

ENDS = """
import torch
from torch import nn

class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        if self.calls > 3:
            try:
                torch.ones(2) @ torch.ones(3)
            except RuntimeError as error:
                END
        return x * self.weight

model = nn.Sequential(Part(), nn.ReLU())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    optimizer.zero_grad()
    model(torch.ones(2)).sum().backward()
    optimizer.step()
    print(step, model[0].weight.tolist(), flush=True)
"""


@pytest.mark.torch
def test_every_process_computes_what_it_does_alone(bench):
    """Threads, fork, spawn, forkserver, workers of a DataLoader; and `os._exit` keeps its code."""
    bench.add("train.py", FAMILY)

    plain = bench.python("train.py", code=17)

    assert len(plain.stdout.splitlines()) == 10
    for tracker in TRACKERS:
        chosen = ("--model-tracker-style", tracker)
        recorded = bench.collect("train.py", f"t_{tracker}", *chosen, code=17)
        assert recorded.stdout == plain.stdout, tracker


@pytest.mark.torch
@pytest.mark.parametrize(
    ("end", "plain_code", "code"),
    [
        ('raise ValueError("the part ended") from error', 1, 1),
        ("raise KeyboardInterrupt", -2, 130),
        ("raise SystemExit(7)", 7, 7),
    ],
)
def test_what_ends_a_program_inside_a_recorded_call_ends_it_alike(bench, end, plain_code, code):
    """Output, traceback and exit code are the plain run's, of which a shell sees 128 + signal."""
    bench.add("train.py", ENDS.replace("END", end))

    plain = bench.python("train.py", code=plain_code)

    for tracker in TRACKERS:
        chosen = ("--model-tracker-style", tracker)
        recorded = bench.collect("train.py", f"t_{tracker}", *chosen, code=code)
        assert recorded.stdout == plain.stdout, tracker
        assert plain.stderr in recorded.stderr, tracker
