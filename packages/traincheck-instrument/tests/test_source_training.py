"""Which loops are training loops. A comment in the script says what each is to be found as."""

from __future__ import annotations

import textwrap

import pytest

from traincheck_instrument.source import rewrite

MARKS = ("training", "accumulating")


def expected(script: str) -> list[tuple[int, str]]:
    lines = enumerate(script.splitlines(), start=1)
    return [
        (number, mark) for number, line in lines for mark in MARKS if line.endswith(f"# {mark}")
    ]


def found(script: str) -> list[tuple[int, str]]:
    loops = rewrite(script, "train.py", ["model"]).findings.loops
    return [
        (loop.line, "accumulating" if loop.accumulating else "training")
        for loop in loops
        if loop.kind == "training"
    ]


SCRIPTS = {
    "the innermost loop around the step": """
        optimizer = torch.optim.SGD(model.parameters())
        for epoch in range(3):
            for batch in loader:  # training
                loss(batch).backward()
                optimizer.step()
            scheduler.step()
        """,
    "a step in a function": """
        def update(opt, batch):
            loss(batch).backward()
            opt.step()
        opt = torch.optim.SGD(model.parameters())
        for epoch in range(3):
            for batch in loader:  # training
                update(opt, batch)
        """,
    "a step two methods away": """
        class Trainer:
            def __init__(self, model):
                self.optim = make_optimizer(model)
            def fit(self, loader):
                for epoch in range(3):
                    for batch in loader:  # training
                        self.training_step(batch)
            def training_step(self, batch):
                self.loss(batch).backward()
                self.update()
            def update(self):
                self.optim.step()
        Trainer(model).fit(loader)
        """,
    "an object of a class of the script": """
        class Agent:
            def learn(self, batch):
                self.loss(batch).backward()
                self.optimizer.step()
        agent = Agent()
        for batch in loader:  # training
            agent.learn(batch)
        """,
    "an object of unknown class that has a method of the script": """
        class Agent:
            def learn(self, batch):
                self.optimizer.step()
        def main(agent):
            for batch in loader:  # training
                agent.learn(batch)
        """,
    "the loop in the called function, not the caller's": """
        def train_epoch(optimizer):
            for batch in loader:  # training
                optimizer.step()
        def main():
            for epoch in range(3):
                train_epoch(optimizer)
        if __name__ == "__main__":
            main()
        """,
    "while, with and try": """
        while step < 100:  # training
            try:
                with autocast():
                    loss = model(batch)
                loss.backward()
                optimizer.step()
            except RuntimeError:
                continue
        """,
    "asynchronous loops": """
        async def main():
            async for batch in stream:  # training
                optimizer.step()
        """,
    "a GAN makes one step with two optimizers": """
        for real in loader:  # training
            optimizerD.step()
            optimizerG.step()
        """,
    "several optimizers in a loop of their own": """
        for batch in loader:  # training
            loss(batch).backward()
            for opt in optimizers:
                opt.step()
        """,
    "several optimizers in a comprehension": """
        for batch in loader:  # training
            loss(batch).backward()
            [opt.step() for opt in optimizers]
        """,
    "nested accumulation": """
        for step in range(10):  # training
            for _ in range(4):
                loss().backward()
            optimizer.step()
        """,
    "flat accumulation": """
        for i, batch in enumerate(loader):  # accumulating
            loss(batch).backward()
            if (i + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
        """,
    "flat accumulation by continue": """
        for i, batch in enumerate(loader):  # accumulating
            loss(batch).backward()
            if (i + 1) % 4:
                continue
            optimizer.step()
        """,
    "flat accumulation in a function": """
        def update(i):
            if i % 4 == 0:
                optimizer.step()
        for i, batch in enumerate(loader):  # accumulating
            loss(batch).backward()
            update(i)
        """,
    "a step that is given up after backward where a number is not sound": """
        for batch in loader:  # training
            loss.backward()
            norm = clip_grad_norm_(model.parameters(), 1.0)
            if not torch.isfinite(norm):
                optimizer.zero_grad()
                continue
            optimizer.step()
        """,
    "a step that is made only where a number is sound": """
        for batch in loader:  # training
            loss.backward()
            if not has_nan(loss):
                optimizer.step()
        """,
    "a number that is sound in one of two ways": """
        for i, batch in enumerate(loader):  # accumulating
            loss.backward()
            if torch.isfinite(loss):
                if i % 4 == 0:
                    optimizer.step()
        """,
    "the end of the run after backward": """
        for batch in loader:  # training
            loss.backward()
            if seconds() > limit:
                break
            optimizer.step()
        """,
    "accumulation that accelerate decides on": """
        for batch in loader:  # accumulating
            with accelerator.accumulate(model):
                accelerator.backward(loss(batch))
                optimizer.step()
        """,
    "a step in both branches is a step": """
        for batch in loader:  # training
            if use_amp:
                scaler.step(optimizer)
            else:
                optimizer.step()
        """,
    "a step that is left out where the loss is not finite, before backward": """
        for batch in loader:  # training
            if not loss.isfinite():
                continue
            loss.backward()
            optimizer.step()
        """,
    "one step of several is unconditional": """
        for i, batch in enumerate(loader):  # training
            d_opt.step()
            if i % 5 == 0:
                g_opt.step()
        """,
    "what is left of accumulation after the loop": """
        for epoch in range(3):
            for i, batch in enumerate(loader):  # accumulating
                loss(batch).backward()
                if i % 4 == 0:
                    optimizer.step()
            if i % 4:
                optimizer.step()
        """,
    "a scaler": """
        amp = torch.amp.GradScaler()
        for batch in loader:  # training
            amp.scale(loss(batch)).backward()
            amp.step(optimizer)
            amp.update()
        """,
    "DeepSpeed": """
        net, _, _, _ = deepspeed.initialize(model=model)
        for batch in loader:  # training
            net.backward(net(batch))
            net.step()
        """,
    "prepared objects": """
        model, opti, loader = accelerator.prepare(model, SGD(model.parameters()), loader)
        for batch in loader:  # training
            opti.step()
        """,
    "an imported optimizer class under another name": """
        from torch.optim import AdamW as A
        o = A(model.parameters())
        for batch in loader:  # training
            o.step()
        """,
    "an optimizer class passed as an argument": """
        import torch
        def build(cls, **kw):
            return cls(model.parameters(), **kw)
        o = build(torch.optim.SGD, lr=0.1)
        for batch in loader:  # training
            o.step()
        """,
    "an optimizer class chosen by name": """
        o = getattr(torch.optim, name)(model.parameters())
        for batch in loader:  # training
            o.step()
        """,
    "an optimizer of the script's own": """
        class Lookahead(torch.optim.Optimizer):
            def step(self):
                self.inner.step()
        it = Lookahead(model.parameters())
        for batch in loader:  # training
            it.step()
        """,
    "a compiled function": """
        def update(batch):
            optimizer.step()
        fast = torch.compile(update)
        for batch in loader:  # training
            fast(batch)
        """,
    "an unknown object counts beside a backward": """
        for batch in loader:  # training
            loss(batch).backward()
            thing.step()
        """,
    "an unknown object without a backward doesn't": """
        for tick in range(9):
            thing.step()
        for batch in loader:  # training
            optimizer.step()
        """,
    "schedulers, profilers and environments make no training loop": """
        warmup = torch.optim.lr_scheduler.LinearLR(optimizer)
        env = gym.make("CartPole")
        with torch.profiler.profile() as p:
            for epoch in range(3):
                while not done:
                    env.step(action)
                for batch in loader:  # training
                    loss(batch).backward()
                    optimizer.step()
                    p.step()
                warmup.step()
                lr_sched.step()
                p.step()
        """,
    "an environment of the script's own": """
        class Maze:
            def step(self, action):
                return self.move(action)
        maze = Maze()
        for batch in loader:  # training
            loss(batch).backward()
            for _ in range(4):
                maze.step(0)
            optimizer.step()
        """,
    "without any step, the innermost backward": """
        for epoch in range(3):
            for batch in loader:  # training
                loss(batch).backward()
                for p in model.parameters():
                    p.data -= 0.1 * p.grad
        """,
    "a step in a hook of backward": """
        for p in model.parameters():
            p.register_post_accumulate_grad_hook(lambda p: optimizers[p].step())
        for batch in loader:  # training
            loss(batch).backward()
        """,
    "two phases": """
        for batch in first:  # training
            optimizer.step()
        for batch in second:  # training
            optimizer.step()
        """,
    "recursion": """
        def descend(n):
            optimizer.step()
            descend(n - 1)
        for batch in loader:  # training
            descend(3)
        """,
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_training_loops_are_found(script):
    """The loops found are those that the comments name, and no others."""
    script = textwrap.dedent(script)

    assert found(script) == expected(script)


def test_a_script_without_training_has_no_loops():
    """Loops that neither step nor go backward are left alone."""
    assert found("for x in range(3):\n    print(x)\n") == []
