"""Lightning: a compiled LightningModule in its Trainer, and a compiled model in Fabric's loop.

    pip install 'autockpt[frameworks]' && python examples/frameworks/lightning_module.py

Both take what `torch.compile(..., backend="autockpt", options=...)` returns. Import lightning before that call.
"""

from __future__ import annotations

import sys
from pathlib import Path

import lightning
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader
from twice import compile_arguments, main, tokens

sys.path.insert(0, str(Path(__file__).parents[1]))
from gpt import GPT


def gpt() -> nn.Module:
    return GPT(vocabulary=256, width=128, layers=2, length=128)


def batches() -> DataLoader[Tensor]:
    return DataLoader(list(tokens(24, 128, 256)), batch_size=8)  # type: ignore[arg-type]  # a list is a data set


class Language(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.model = gpt()
        self.losses: list[float] = []

    def training_step(self, batch: Tensor, number: int) -> Tensor:
        loss: Tensor = self.model(batch, batch)
        return loss

    def on_train_batch_end(self, outputs: dict[str, Tensor], batch: Tensor, number: int) -> None:
        self.losses.append(outputs["loss"].item())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


def trainer(budget: int | None) -> list[float]:
    module = Language()
    compiled = torch.compile(module, **compile_arguments(budget))
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    lightning.Trainer(max_epochs=1, enable_model_summary=False, **quiet).fit(compiled, batches())
    return module.losses


def fabric(budget: int | None) -> list[float]:
    launched = lightning.Fabric(accelerator="auto")
    model = gpt()
    compiled, optimizer = launched.setup(
        torch.compile(model, **compile_arguments(budget)), torch.optim.AdamW(model.parameters(), lr=1e-2)
    )
    losses = []
    for batch in launched.setup_dataloaders(batches()):
        loss = compiled(batch, batch)
        launched.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    main(trainer, fabric)
