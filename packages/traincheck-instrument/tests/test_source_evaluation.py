"""Which loops are evaluation loops. A comment in the script says which are to be found."""

from __future__ import annotations

import textwrap

import pytest

from traincheck_instrument.source import rewrite

SCRIPTS = {
    "a function named like an evaluation": """
        def validate_epoch(net, loader):
            for x, y in loader:  # evaluation
                hits += net(x)
        """,
    "a method": """
        class Trainer:
            def __init__(self, model):
                self.model = model
            def test(self, loader):
                for x in loader:  # evaluation
                    self.model(x)
        """,
    "through a function of the script": """
        def eval_step(model, batch):
            return model(batch)
        def run_eval(model):
            for batch in loader:  # evaluation
                total += eval_step(model, batch)
        """,
    "after model.eval()": """
        model = Net()
        model.eval()
        for x in loader:  # evaluation
            model(x)
        """,
    "after model.eval(), inside a block": """
        def report(model):
            model.train(False)
            with autocast():
                for x in loader:  # evaluation
                    model(x)
        """,
    "under no_grad": """
        def report(model):
            with open("f") as f, torch.no_grad():
                for x in loader:  # evaluation
                    model(x)
        """,
    "under inference_mode as a decorator": """
        @torch.inference_mode()
        def report(model):
            for x in loader:  # evaluation
                model.generate(x)
        """,
    "of nested loops the outer one that asks the model": """
        @torch.no_grad()
        def report(model, loaders):
            for loader in loaders:
                for x in loader:  # evaluation
                    out = model(x)
                    for y in out:
                        metric = model(y)
        """,
    "beside training in one loop": """
        model = Net()
        for i, batch in enumerate(loader):
            model(batch).backward()
            optimizer.step()
            if i % 100 == 0:
                model.eval()
                for x in val_loader:  # evaluation
                    model(x)
                model.train()
        """,
    "not one that hands its output on while it runs": """
        @torch.no_grad()
        def predict(model):
            for x in loader:
                yield model(x)
        @torch.no_grad()
        async def serve(model):
            for x in loader:
                await send(model(x))
            async for x in stream:
                model(x)
        """,
    "one inside, and one that only defines what yields": """
        @torch.no_grad()
        def predict(model):
            for batch in loader:
                for x in batch:  # evaluation
                    out.append(model(x))
                yield out
        @torch.no_grad()
        def report(model):
            for x in loader:  # evaluation
                def later():
                    yield x
                model(x)
        """,
    "not the loop around training": """
        def test_convergence(model):
            for seed in range(3):
                for batch in loader:
                    model(batch).backward()
                    optimizer.step()
        """,
    "not words that only contain one": """
        def latest_values(model):
            for x in loader:
                model(x)
        """,
    "not the preparation of data": """
        def make_test_set(transform):
            for x in data:
                out.append(transform(x))
        for name in names:
            files.append(load(name))
        """,
    "not a loop that asks no model": """
        def test_report(results):
            for name, value in results.items():
                print(name, value)
        """,
    "not a loop over parameters": """
        @torch.no_grad()
        def init(model, function):
            for p in model.parameters():
                function(p)
        """,
    "not a loop under no_grad in training mode": """
        def warm_up(model):
            model.train()
            with torch.no_grad():
                for _ in range(20):
                    model(x)
        """,
    "not the layers of a model": """
        class Net(nn.Module):
            @torch.no_grad()
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
        """,
    "not an average of weights": """
        class Average:
            @torch.no_grad()
            def update(self, parameters):
                for s, p in zip(self.shadow, parameters):
                    s.lerp_(p, 0.1)
        """,
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_evaluation_loops_are_found(script):
    """The loops found are those that the comments name, and no others."""
    script = textwrap.dedent(script)
    lines = enumerate(script.splitlines(), start=1)
    expected = [number for number, line in lines if line.endswith("# evaluation")]

    loops = rewrite(script, "train.py", []).findings.loops

    assert [loop.line for loop in loops if loop.kind == "evaluation"] == expected
