"""Training loops for `autockpt verify --step examples/steps/loops.py:LOOP`: ways in which a step is not one graph.

Each function takes the keyword arguments of `torch.compile` and returns a model and a function that runs one step.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from sys import path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

path.insert(0, str(Path(__file__).parents[1]))
from gpt import GPT

Loop = tuple[nn.Module, Callable[[], Any]]
VOCABULARY = 256


def tokens(batch: int = 8, length: int = 128, vocabulary: int = VOCABULARY) -> Tensor:
    return torch.randint(0, vocabulary, (batch, length))


def gpt(layers: int, width: int = 128, vocabulary: int = VOCABULARY) -> GPT:
    return GPT(vocabulary=vocabulary, width=width, layers=layers, length=128)


def trained(model: nn.Module, loss: Callable[[], Tensor], micro_batches: int = 1, optimizer: Any = None) -> Loop:
    def step() -> None:
        for _ in range(micro_batches):
            loss().backward()
        if optimizer is not None:
            optimizer.step()

    return model, step


def blocks(compile_with: dict[str, Any], layers: int = 8, width: int = 128, batch: int = 8) -> Loop:
    """Each block compiled alone, as torchtitan and accelerate do."""
    model = gpt(layers, width)
    for block in model.blocks:
        block.compile(**compile_with)

    def loss() -> Tensor:
        data = tokens(batch)
        return model(data, data)

    return trained(model, loss)


def blocks2(compile_with: dict[str, Any]) -> Loop:
    return blocks(compile_with, layers=2)


def blocks16(compile_with: dict[str, Any]) -> Loop:
    return blocks(compile_with, layers=16)


def whole(compile_with: dict[str, Any], layers: int = 8, width: int = 128, batch: int = 8) -> Loop:
    """The same in one graph, to compare with."""
    model = gpt(layers, width)
    forward = torch.compile(model, **compile_with)

    def loss() -> Tensor:
        data = tokens(batch)
        return forward(data, data)

    return trained(model, loss)


class Broken(nn.Module):
    """A GPT with a graph break after one layer in the middle, or after every layer."""

    def __init__(self, layers: int, in_loop: bool, by_item: bool) -> None:
        super().__init__()
        self.gpt, self.in_loop, self.by_item = gpt(layers), in_loop, by_item

    def forward(self, data: Tensor) -> Tensor:
        x = self.gpt.token(data) + self.gpt.position(torch.arange(data.shape[1]))
        if self.in_loop:
            for block in self.gpt.blocks:
                x = self.stop(block(x))
        else:
            half = len(self.gpt.blocks) // 2
            x = self.stop(self.gpt.blocks[:half](x) if half else x)
            x = self.gpt.blocks[half:](x)
        return F.cross_entropy(self.gpt.head(self.gpt.norm(x)).flatten(0, 1), data.flatten())

    def stop(self, x: Tensor) -> Tensor:
        if self.by_item:
            return x if x.sum().item() < float("inf") else x + 1
        print(end="")
        return x


def broken(compile_with: dict[str, Any], layers: int = 4, in_loop: bool = False, by_item: bool = False) -> Loop:
    model = Broken(layers, in_loop, by_item)
    model.gpt.blocks = nn.Sequential(*model.gpt.blocks)
    forward = torch.compile(model, **compile_with)
    return trained(model, lambda: forward(tokens()))


def print_in_the_middle(compile_with: dict[str, Any]) -> Loop:
    return broken(compile_with)


def print_in_the_loop(compile_with: dict[str, Any]) -> Loop:
    return broken(compile_with, layers=3, in_loop=True)


def item_in_the_middle(compile_with: dict[str, Any]) -> Loop:
    return broken(compile_with, by_item=True)


def item_in_the_loop(compile_with: dict[str, Any]) -> Loop:
    return broken(compile_with, layers=3, in_loop=True, by_item=True)


class Scores(nn.Module):
    """A GPT without its loss."""

    def __init__(self, layers: int, vocabulary: int) -> None:
        super().__init__()
        self.gpt = gpt(layers, vocabulary=vocabulary)

    def forward(self, data: Tensor) -> Tensor:
        x = self.gpt.token(data) + self.gpt.position(torch.arange(data.shape[1]))
        for block in self.gpt.blocks:
            x = block(x)
        scores: Tensor = self.gpt.head(self.gpt.norm(x))
        return scores


def loss_outside(compile_with: dict[str, Any], layers: int = 8, vocabulary: int = 16384) -> Loop:
    model = Scores(layers, vocabulary)
    forward = torch.compile(model, **compile_with)

    def loss() -> Tensor:
        data = tokens(2, vocabulary=vocabulary)
        return F.cross_entropy(forward(data).flatten(0, 1), data.flatten())

    return trained(model, loss)


def accumulated(compile_with: dict[str, Any], layers: int = 4) -> Loop:
    """Four micro-batches, then one step of AdamW."""
    model = gpt(layers)
    forward = torch.compile(model, **compile_with)

    def loss() -> Tensor:
        data = tokens()
        return forward(data, data)

    return trained(model, loss, micro_batches=4, optimizer=torch.optim.AdamW(model.parameters()))


def adamw(compile_with: dict[str, Any], layers: int = 4) -> Loop:
    """The loop of the README."""
    model = gpt(layers)
    forward = torch.compile(model, **compile_with)

    def loss() -> Tensor:
        data = tokens()
        return forward(data, data)

    return trained(model, loss, optimizer=torch.optim.AdamW(model.parameters()))


class LowRank(nn.Module):
    """A frozen linear layer with a trained correction of rank 4 (LoRA)."""

    def __init__(self, frozen: nn.Linear) -> None:
        super().__init__()
        self.frozen = frozen.requires_grad_(False)
        self.down, self.up = nn.Linear(frozen.in_features, 4, bias=False), nn.Linear(4, frozen.out_features, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        corrected: Tensor = self.frozen(x) + self.up(self.down(x))
        return corrected


def lora(compile_with: dict[str, Any], layers: int = 4) -> Loop:
    model = gpt(layers).requires_grad_(False)
    for block in model.blocks:
        block.up, block.down = LowRank(block.up), LowRank(block.down)
    forward = torch.compile(model, **compile_with)

    def loss() -> Tensor:
        data = tokens()
        return forward(data, data)

    trainable = [p for p in model.parameters() if p.requires_grad]
    return trained(model, loss, optimizer=torch.optim.AdamW(trainable))


def gan(compile_with: dict[str, Any], width: int = 256, batch: int = 512) -> Loop:
    """Two models trained in turns, each with its own optimizer."""

    def layers(first: int, last: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Linear(first, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, last)
        )

    model = nn.ModuleDict({"generator": layers(16, 64), "critic": layers(64, 1)})
    generate, judge = (torch.compile(part, **compile_with) for part in (model["generator"], model["critic"]))
    optimizers = {name: torch.optim.AdamW(part.parameters()) for name, part in model.items()}

    def step() -> None:
        real, noise = torch.randn(batch, 64), torch.randn(batch, 16)
        with torch.no_grad():
            made = model["generator"](noise)
        (F.softplus(-judge(real)).mean() + F.softplus(judge(made)).mean()).backward()
        optimizers["critic"].step()
        model["critic"].zero_grad(set_to_none=True)
        F.softplus(-judge(generate(noise))).mean().backward()
        optimizers["generator"].step()

    return model, step


def hf_trainer(compile_with: dict[str, Any], layers: int = 2) -> Loop:
    """GPT-2 of `transformers` with its dropout, one step of `Trainer.train` at a time.

    The Trainer compiles for backends of its own list only, so autockpt is enabled for Inductor.
    """
    import tempfile

    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

    import autockpt

    autockpt.disable()
    if "options" in compile_with:
        autockpt.enable(**compile_with["options"])
    settings = GPT2Config(vocab_size=512, n_positions=128, n_embd=128, n_layer=layers, n_head=4, use_cache=False)
    model = GPT2LMHeadModel(settings)

    class KeepGradients(TrainerCallback):
        """The Trainer clears gradients when the optimizer is done."""

        def on_optimizer_step(self, *_: Any, **__: Any) -> None:
            self.gradients = [parameter.grad for parameter in model.parameters()]

    arguments = TrainingArguments(
        tempfile.mkdtemp(),
        torch_compile=True,
        max_steps=1,
        per_device_train_batch_size=8,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
    )
    data = [{"input_ids": one, "labels": one} for one in tokens(vocabulary=512)]
    kept = KeepGradients()
    # Without one of its own every call of `train` would begin with a new optimizer, which has no state.
    optimizer = torch.optim.AdamW(model.parameters())
    trainer = Trainer(model=model, args=arguments, train_dataset=data, callbacks=[kept], optimizers=(optimizer, None))

    def step() -> None:
        trainer.train()
        for parameter, gradient in zip(model.parameters(), kept.gradients, strict=True):
            parameter.grad = gradient
        kept.gradients = []

    return model, step
