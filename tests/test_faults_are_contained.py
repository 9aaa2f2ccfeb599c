"""Whatever breaks in TrainCheck, or in what it looks at, training goes on as if neither did."""

import pytest

TRACKERS = ("subclass", "proxy", "sampler")

# A small training that says in all its bits what came of it.
TRAINING = """
import hashlib
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)

def train(model, at_step=lambda step: None, steps=6):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for step in range(steps):
        at_step(step)
        optimizer.zero_grad()
        loss = F.mse_loss(model(torch.randn(8, 4)), torch.ones(8, 2))
        loss.backward()
        optimizer.step()
    tensors = [loss.detach(), *(p.detach() for p in model.parameters())]
    bits = b"".join(t.numpy().tobytes() for t in tensors)
    print("bits", hashlib.sha256(bits).hexdigest())
"""

# Step by step, all that one module of TrainCheck does in the course of a run raises.
SABOTAGE = f"""
import inspect
import sys
{TRAINING}
# What the program calls itself may not raise: wrappers, marks, parameters, models.
INNER = ("contexts", "encode.", "journal", "looking", "observer", "sink.lines", "sink.writer",
         "source_lines", "trackers.")
CALLED = ("trackers.parameter", "trackers.proxy", "trackers.sampler", "trackers.swapping",
          "trackers.noticing", "trackers.tracker", "trackers.wrapped", "trackers.touches")

def inner_modules():
    names = sorted(name.partition(".")[2] for name in sys.modules
                   if name.startswith("traincheck_instrument."))
    names = [name for name in names if name.startswith(INNER) and not name.startswith(CALLED)]
    return sorted(names, key=lambda name: name.startswith("sink."))  # whose faults are the last

class Broken(Exception):
    def __str__(self):
        raise ValueError("and it does not say why")

def fail(*_, **__):
    raise Broken

def functions(module):
    for name, value in list(vars(module).items()):
        if inspect.isfunction(value):
            yield module, name, value
        elif inspect.isclass(value) and value.__module__ == module.__name__:
            for own, method in list(vars(value).items()):
                if inspect.isfunction(method):
                    yield value, own, method

broken = []

def break_next(step):
    for owner, name, function in broken:
        setattr(owner, name, function)
    broken.clear()
    number, is_healing = divmod(step, 2)
    names = inner_modules()
    if is_healing or not 0 < number <= len(names):
        return
    module = sys.modules[f"traincheck_instrument.{{names[number - 1]}}"]
    for owner, name, function in functions(module):
        broken.append((owner, name, function))
        setattr(owner, name, fail)
    print("broken:", module.__name__, len(broken), flush=True)

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
train(model, break_next, steps=100)
"""

HOSTILE = f"""
{TRAINING}
ASKED = []

def refuse(name):
    def method(*_, **__):
        ASKED.append(name)
        raise RuntimeError(name)
    return method

# What the program itself makes of it is its own: torch may ask, and did so before us.
names = ["__getattr__", "__repr__", "__str__", "__len__", "__eq__", "__hash__", "__bool__",
         "__iter__", "__getitem__", "__contains__", "__format__", "__dir__", "__reduce_ex__"]
Hostile = type("Hostile", (), {{name: refuse(name) for name in names}})
HostileList = type("HostileList", (list,), {{name: refuse(name) for name in names}})
HostileDict = type("HostileDict", (dict,), {{name: refuse(name) for name in names}})

class Takes(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)
        self.linear.weight.mark = Hostile()
    def forward(self, x, *extra, **named):
        return self.linear(x)

class Passes(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Takes()
        self.note = Hostile()
    def forward(self, x):
        extra = Hostile(), HostileList([Hostile()]), HostileDict(), [Hostile(), {{"k": Hostile()}}]
        return self.inner(x, *extra, named=Hostile())

model = Passes()
train(model)
print("asked", sorted(set(ASKED)))
"""

ODD_MODELS = f"""
{TRAINING}
class OwnParameter(nn.Parameter):
    __slots__ = ("mine",)

class Guarded(nn.Linear):
    def __setattr__(self, name, value):
        if name not in vars(self) and "ready" in vars(self):
            raise AttributeError(f"no new attribute {{name}}")
        super().__setattr__(name, value)

class NoModule:
    def __init__(self):
        self.weight = torch.zeros(4, 2, requires_grad=True)
    def parameters(self):
        return [self.weight]
    def __call__(self, x):
        return x @ self.weight

class Refuses(nn.Linear):
    def named_parameters(self, *_, **__):
        raise RuntimeError("ask parameters()")
    named_modules = named_buffers = named_children = named_parameters
    def parameters(self, recurse=True):
        return iter([self.weight, self.bias])

class Hidden(nn.Linear):
    def __getattribute__(self, name):
        if name in ("__dict__", "_parameters"):
            hits.append(name)
        return super().__getattribute__(name)

hits = []
model = Guarded(4, 2); model.ready = True
train(model)
model = nn.Linear(4, 2); model.weight = OwnParameter(torch.zeros(2, 4))
train(model)
model = NoModule()
train(model)
model = Refuses(4, 2)
train(model)
model = Hidden(4, 2)
train(model)
model = nn.LazyLinear(2)
model(torch.ones(1, 4))
train(model)
model = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(4, 2), nn.Tanh()))
train(model)
model = nn.Linear(4, 2); model.sparse = nn.Parameter(torch.eye(3).to_sparse(), requires_grad=False)
optimizer = torch.optim.SGD([model.weight], lr=0.1)
for step in range(3):
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
print("bits", model.weight.detach().numpy().tobytes().hex())
model = nn.Linear(4, 2, device="meta")
model = model.to_empty(device="cpu")
nn.init.ones_(model.weight), nn.init.zeros_(model.bias)
train(model)
"""


def plain_and_recorded(bench, source):
    """Run a program plainly, and under each tracker."""
    bench.add("train.py", source)
    plain = bench.python("train.py")
    return plain, {
        tracker: bench.collect("train.py", f"t_{tracker}", "--model-tracker-style", tracker)
        for tracker in TRACKERS
    }


def bits(run):
    """Return what a program says of its training, and of what was asked of its objects."""
    return [line for line in run.stdout.splitlines() if line.startswith(("bits", "asked"))]


@pytest.mark.torch
def test_whatever_of_ours_raises_training_goes_on(bench):
    """Every function of one module after the other raises, during a step each."""
    plain, recorded = plain_and_recorded(bench, SABOTAGE)

    assert "broken:" not in plain.stdout
    for tracker, run in recorded.items():
        assert run.stdout.count("broken:") >= 15
        assert "not recorded, training goes on" in run.stderr
        assert bits(run) == bits(plain), tracker


@pytest.mark.torch
@pytest.mark.parametrize("source", [HOSTILE, ODD_MODELS], ids=["objects", "models"])
def test_what_cannot_be_looked_at_stops_nothing(bench, source):
    """Objects that refuse every question, of which none is put; models that no tracker knows."""
    plain, recorded = plain_and_recorded(bench, source)

    assert bits(plain)
    for tracker, run in recorded.items():
        assert bits(run) == bits(plain), tracker


@pytest.mark.torch
def test_a_full_disk_costs_records_and_nothing_else(bench):
    """The program is told to go on, the trace that there is stays valid."""
    bench.add("train.py", TRAINING + "\nmodel = nn.Linear(4, 2)\ntrain(model, steps=400)\n")
    full = bench.add("full.sh", "ulimit -f 64\npython train.py\n")

    plain = bench.python("train.py").stdout
    recorded = bench.collect("train.py", "t", "--shscript", full)

    assert recorded.stdout == plain
    assert "File too large" in recorded.stderr
    assert sum(path.stat().st_size for path in bench.folder.glob("t/trace_*")) <= 64 * 1024
