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
    "an attribute of an argument": """
        def report(task):
            task.net.eval()
            for x in loader:  # evaluation
                out = task.net(x)
        """,
    "an attribute that is a model by its name": """
        class Trainer:
            @torch.no_grad()
            def report(self):
                self.model.eval()
                for x, y in self.loader():  # evaluation
                    loss = mse_loss(self.ema.ema_model(x), y)
            def validate(self):
                for x in self.loader():  # evaluation
                    y = self.state.model(x)
                for x in self.loader():  # evaluation
                    y = self.model.module(x)
        """,
    "one of several models": """
        class Trainer:
            def report(self, nets):
                self.eval()
                for x in loader:  # evaluation
                    y = self.models["a"](x)
                for x in loader:  # evaluation
                    y = nets[0](x)
        """,
    "what a model is wrapped in": """
        def report(model):
            model.eval()
            for x in loader:  # evaluation
                y = accelerator.unwrap_model(model)(x)
        """,
    "a method of a model": """
        def report(task):
            task.agent.eval()
            for batch in loader:  # evaluation
                value = task.agent.value_of(batch)
        """,
    "a call that is given the model and data": """
        from .losses import compute_loss
        class Trainer:
            def evaluate(self):
                with torch.no_grad():
                    for _ in range(5):  # evaluation
                        compute_loss(self.model, torch.randn(8, 6))
            def report(self):
                self.model.eval()
                for batch in loader:  # evaluation
                    loss, metrics = self.loss_fn(self.model, batch)
                for batch in loader:  # evaluation
                    self.one(batch)
            def one(self, batch):
                return losses.of(net=self.model, batch=batch)
        """,
    "not an average of models": """
        @torch.no_grad()
        def average(ema, model, decay):
            for p, q in zip(ema.parameters(), model.parameters()):
                p.copy_(function(q))
            for e, m in zip(emas, nets):
                ema_update(e, m, decay)
            for path in checkpoints:
                load_weights(model, path)
        """,
    "not the handling of a model": """
        @torch.no_grad()
        def test_report(model, path):
            for step in steps:
                save_checkpoint(model, f"{path}/{step}")
                model.to(devices[step])
                print(model, len(model), isinstance(step, model))
                compare(model_path, torch.load(step))
                build_model(step)
                torch.nn.utils.prune.l1(model, step)
                optimize(model, step, optimizer)
        """,
    "not metrics and transforms": """
        @torch.no_grad()
        def test_report(metrics, transform, tokenizer):
            for name, metric in metrics.items():
                metric(outputs)
            for m in metrics:
                m(outputs, step)
            for x in data:
                out.append(tokenizer.encode(transform(x)))
        """,
    "not training that stands elsewhere, after another model's mode": """
        from engine import engine, run_batch
        teacher.eval()
        for epoch in range(3):
            engine(model, teacher, batches(epoch))
        for batch in loader:
            run_batch(model, batch)
        for epoch in range(3):
            engine(teacher, epoch)
        """,
    "not what is collected to train on": """
        class Agent:
            @torch.no_grad()
            def collect(self, obs):
                for t in range(100):
                    action = self.policy(obs)
                    obs, reward, done, info = self.envs.step(action)
            @torch.no_grad()
            def evaluate(self, env, obs):
                for t in range(100):  # evaluation
                    obs, reward, done, info = env.step(self.policy(obs))
        """,
    "not the layers that a model goes through": """
        class Net(nn.Module):
            @torch.no_grad()
            def features(self, x):
                for block in self.blocks:
                    x = block(x)
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
