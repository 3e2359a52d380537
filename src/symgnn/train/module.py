"""A task and the initialisations of a model as Lightning's module."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor
from torch.utils.data import DataLoader
from torch_geometric.data import Batch

from symgnn.train.config import Training
from symgnn.train.loader import Batches, Graphs, loader, mixed
from symgnn.train.members import Members
from symgnn.train.metrics import Errors, Judge, Metrics, Sums

OPTIMIZERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}


class Module(LightningModule):
    """What a step, a validation and the learning rate are.

    `epoch` and `step` count what is done, over all processes that the run has had. Everything
    random in a step is drawn from a seed of its own, so that nothing but these two numbers has to
    be known to go on.
    """

    def __init__(
        self,
        members: Members,
        train: Training,
        judge: Judge,
        graphs: Mapping[str, Graphs],
    ) -> None:
        super().__init__()
        self.members, self.settings = members, train
        self.judge, self.graphs = judge, graphs
        self.epoch = self.step = 0
        self.rate = 1.0  # by what a plateau has lowered the learning rate
        self.saved_optimizer: dict[str, Any] | None = None
        self.saved_precision: dict[str, Any] = {}
        self.learned = Sums(torch.zeros(len(members)), torch.zeros(1))
        self.metrics = Metrics(judge.task, len(members))
        self.loaders: dict[str, DataLoader] = {}

    # ---- loaders

    def setup(self, stage: str) -> None:
        train, trainer = self.settings, self.trainer
        for name, graphs in self.graphs.items():
            training = name == "train"
            batches = Batches(
                len(graphs),
                train.batch_size,
                seed=train.seed if training else None,
                drop_last=train.drop_last and training,
                rank=trainer.global_rank,
                world=trainer.world_size,
            )
            if training:
                self.batches = batches
                batches.epoch = self.epoch
            self.loaders[name] = loader(graphs, batches, self.members.topology, train.workers)

    def train_dataloader(self) -> DataLoader:
        return self.loaders["train"]

    def val_dataloader(self) -> DataLoader:
        return self.loaders["validation"]

    # ---- steps

    def sums(self, batch: Batch) -> tuple[Sums, Tensor | Errors]:
        """Of a batch, the losses and what :meth:`Metrics.add` counts."""
        found, counted = self.judge(self.members(batch), batch.y)
        if batch.spare:
            found = Sums(found.losses * 0, found.weight * 0)
        return found, counted

    def training_step(self, batch: Batch, _: int) -> Tensor:
        # not torch.manual_seed, which without a GPU notes the call, with its stack, every time
        seed = mixed(self.settings.seed, self.step, self.global_rank)
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)
        found, _counted = self.sums(batch)
        # gradients are averaged over devices, so each weighs by its part of the whole batch
        whole = self.over_devices(found.weight)
        whole = torch.where(whole > 0, whole, 1.0)  # a batch may have no label
        self.learned = Sums(
            self.learned.losses + found.losses.detach(), self.learned.weight + found.weight
        )
        return found.losses.sum() * (self.trainer.world_size / whole)

    def validation_step(self, batch: Batch, _: int) -> None:
        found, counted = self.sums(batch)
        if not batch.spare:
            self.metrics.add(found, counted)

    def over_devices(self, value: Tensor) -> Tensor:
        """The sum over devices."""
        if self.trainer.world_size == 1:
            return value
        return self.trainer.strategy.reduce(value.clone(), reduce_op="sum")

    # ---- epochs

    def on_train_start(self) -> None:
        if self.saved_precision:
            self.trainer.precision_plugin.load_state_dict(self.saved_precision)

    def on_train_epoch_start(self) -> None:
        device = self.device
        zero = torch.zeros((), dtype=torch.float64, device=device)
        self.learned = Sums(zero.expand(len(self.members)), zero)

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        for group in self.optimizers(use_pl_optimizer=False).param_groups:  # type: ignore[union-attr]
            group["lr"] = self.learning_rate()

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.step += 1
        self.epoch, rest = divmod(self.step, len(self.loaders["train"]))
        if rest == 0:
            self.batches.epoch = self.epoch

    def on_validation_epoch_start(self) -> None:
        self.metrics = Metrics(self.judge.task, len(self.members), self.device)

    def found(self) -> dict[str, Tensor]:
        """The training loss of this epoch and the numbers of its validation, `[S]` each."""
        losses, weight = (self.over_devices(value) for value in self.learned)
        self.metrics.reduce(self.over_devices)
        values = {f"validation_{name}": value for name, value in self.metrics.values().items()}
        return {"train_loss": (losses / weight).cpu(), **values}

    # ---- optimisation

    def configure_optimizers(self) -> torch.optim.Optimizer:
        train = self.settings
        options: dict[str, Any] = {} if train.optimizer == "sgd" else {"fused": True}
        if train.precision == "16":  # Lightning cannot clip gradients of a fused one
            options = {}
        optimizer = OPTIMIZERS[train.optimizer](
            self.members.parameters(),
            train.learning_rate,
            weight_decay=train.weight_decay,
            **options,
        )
        if self.saved_optimizer is not None:
            optimizer.load_state_dict(self.saved_optimizer)
        return optimizer

    def configure_gradient_clipping(self, *_: Any, **__: Any) -> None:
        if self.settings.clip is not None:
            self.members.clip(self.settings.clip)

    def learning_rate(self) -> float:
        """That of the next step."""
        train, steps = self.settings, len(self.loaders["train"])
        warm, last = train.warmup * steps, train.epochs * steps
        rate = train.learning_rate * self.rate
        if self.step < warm:
            return rate * min(1.0, (self.step + 1) / warm)
        if train.schedule == "cosine":
            return rate * 0.5 * (1 + math.cos(math.pi * (self.step - warm) / max(last - warm, 1)))
        return rate
