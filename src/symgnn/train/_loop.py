"""The training loop: epochs, steps, validations. Every training of symgnn runs through here."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor
from torch.utils.data import DataLoader
from torch_geometric.data import Batch

from symgnn.train._checkpointing import Checkpoints
from symgnn.train._ensemble import Ensemble, Loss, Step
from symgnn.train._loader import Batches, GraphDataset, loader, mixed
from symgnn.train._metrics import Judge, Metrics
from symgnn.train._settings import Training

OPTIMIZERS = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
#: A step that repeats the same batch this often is recorded once and replayed: recording takes a
#: second or two.
WORTH_RECORDING = 300

#: Signature: (epoch, losses [S]) -> None, called after each epoch.
OnEpoch = Callable[[int, Tensor], Any]


def train_loop(
    ensemble: Ensemble,
    graphs: GraphDataset,
    judge: Judge,
    settings: Training,
    checkpoints: Checkpoints,
    *,
    fabric: Fabric,
    watched: Mapping[str, GraphDataset],
    on_step: Callable[[int, int], Any] | None = None,
    on_epoch: OnEpoch | None = None,
    on_validation: Callable[[int], Any] | None = None,
) -> None:
    """Train an ensemble, from the start or from its last checkpoint.

    Everything random in a step follows from the seed and the number of the step, so a training
    that was stopped continues with the weights that it would have had.

    Args:
        ensemble: The initialisations; trained in place. `checkpoints` keeps the chosen weights.
        graphs: The training graphs.
        judge: The loss and the metrics.
        settings: Epochs, batch size, learning rate, ...
        checkpoints: Where weights are kept, in memory or in files.
        fabric: The devices, launched.
        watched: Splits that are measured at each validation; "validation" is monitored.
        on_step: Called with the number of steps done, and of all steps.
        on_epoch: Called after each epoch, with its number, from 1, and the training losses.
        on_validation: Called after each validation, with the number of the epoch.
    """
    ensemble.to(fabric.device)
    optimizer = make_optimizer(ensemble, settings)
    grad_scaler = torch.amp.GradScaler(fabric.device.type, enabled=settings.precision == "16")
    position = checkpoints.restore(ensemble, optimizer, grad_scaler)
    if checkpoints.finished(position):
        return
    batches = _batches(graphs, settings, fabric, train=True)
    train_loader = loader(graphs, batches, ensemble.topology, settings.workers)
    watch_loaders = {
        name: loader(split, _batches(split, settings, fabric), ensemble.topology, settings.workers)
        for name, split in watched.items()
    }
    steps, loss, dtype = len(batches), _loss(judge), next(ensemble.parameters()).dtype
    step: Step = partial(ensemble.gradients, loss)
    left = settings.epochs - position.epoch
    if steps == 1 and left >= WORTH_RECORDING and _recordable(settings, fabric):
        (batch,) = (_on(fabric, batch, judge, dtype) for batch in train_loader)
        step = ensemble.recorded(loss, batch) or step
        train_loader = [batch]  # type: ignore[assignment]
    began = time.monotonic() - position.seconds
    busy = time.process_time() - position.processor_seconds

    while position.epoch < settings.epochs:
        batches.epoch = position.epoch
        ensemble.train()
        total = torch.zeros(len(ensemble) + 1, dtype=torch.float64, device=fabric.device)
        for batch in train_loader:
            batch = _on(fabric, batch, judge, dtype)
            _seed(mixed(settings.seed, position.step, fabric.global_rank), fabric)
            rate = learning_rate(settings, position.step, steps, position.rate)
            for group in optimizer.param_groups:
                group["lr"] = rate
            with fabric.autocast():
                losses = step(batch, grad_scaler.get_scale())
            _sum_gradients(ensemble, fabric)
            grad_scaler.unscale_(optimizer)
            if settings.clip is not None:
                ensemble.clip(settings.clip)
            grad_scaler.step(optimizer)
            grad_scaler.update()
            total += torch.cat([losses * batch.whole, batch.weight.view(1)])
            position.step += 1
            if on_step is not None:
                on_step(position.step, steps * settings.epochs)
        position.epoch += 1
        total = over_devices(total, fabric)
        losses = (total[:-1] / total[-1]).cpu()
        if on_epoch is not None:
            on_epoch(position.epoch, losses)
        if position.epoch % settings.validate_every and position.epoch < settings.epochs:
            continue
        found = {"train_loss": losses}
        for name, watch_loader in watch_loaders.items():
            measured = measure(ensemble, watch_loader, judge, fabric)
            found |= {f"{name}_{key}": value for key, value in measured.items()}
        position.seconds = time.monotonic() - began
        position.processor_seconds = time.process_time() - busy
        now = learning_rate(settings, position.step, steps, position.rate)
        checkpoints.keep(position, found, ensemble, optimizer, grad_scaler, now, fabric)
        if on_validation is not None:
            on_validation(position.epoch)
        if checkpoints.finished(position):
            break


def _batches(
    graphs: GraphDataset, settings: Training, fabric: Fabric, train: bool = False
) -> Batches:
    return Batches(
        len(graphs),
        settings.batch_size,
        seed=settings.seed if train else None,
        drop_last=settings.drop_last and train,
        rank=fabric.global_rank,
        world=fabric.world_size,
    )


def make_optimizer(ensemble: Ensemble, settings: Training) -> torch.optim.Optimizer:
    """The optimiser of all members."""
    options: dict[str, Any] = {} if settings.optimizer == "sgd" else {"fused": True}
    return OPTIMIZERS[settings.optimizer](
        ensemble.parameters(),
        settings.learning_rate,
        weight_decay=settings.weight_decay,
        **options,
    )


def learning_rate(settings: Training, step: int, steps: int, factor: float = 1.0) -> float:
    """The learning rate of a step, for `steps` of them in an epoch."""
    warm, last = settings.warmup * steps, settings.epochs * steps
    rate = settings.learning_rate * factor
    if step < warm:
        return rate * min(1.0, (step + 1) / warm)
    if settings.schedule == "cosine":
        return rate * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(last - warm, 1)))
    return rate


@torch.no_grad()
def measure(
    ensemble: Ensemble, batches: DataLoader, judge: Judge, fabric: Fabric
) -> dict[str, Tensor]:
    """Every metric of the graphs of a loader, by name, `[S]` each."""
    ensemble.eval()
    metrics = Metrics(judge.task, len(ensemble), fabric.device)
    for batch in batches:
        if not batch.spare:
            batch = batch.to(fabric.device)
            with fabric.autocast():
                outputs = ensemble(batch)
            metrics.add(*judge(outputs, batch.y))
    metrics.reduce(lambda value: over_devices(value, fabric))
    return metrics.values()


def _loss(judge: Judge) -> Loss:
    """The loss of one member: its part of the mean over the batch of all devices."""

    def loss(outputs: Tensor, batch: Batch) -> Tensor:
        value = judge.losses(outputs.unsqueeze(0), batch.y)[0] / batch.whole
        return value * 0 if batch.spare else value

    return loss


def _on(fabric: Fabric, batch: Batch, judge: Judge, dtype: torch.dtype) -> Batch:
    """The batch on its device, with its weight here and over all devices."""
    if "whole" in batch:
        return batch
    batch = batch.to(fabric.device)
    weight = judge.weight(batch.y).to(dtype)
    batch.weight = weight * 0 if batch.spare else weight
    whole = over_devices(batch.weight, fabric)
    batch.whole = torch.where(whole > 0, whole, 1)  # 0 where all labels of a batch are missing
    return batch


def _recordable(settings: Training, fabric: Fabric) -> bool:
    return fabric.world_size == 1 and settings.precision in ("32", "64") and not settings.compile


def _seed(seed: int, fabric: Fabric) -> None:
    # not torch.manual_seed, which without a GPU notes the call, with its stack, every time
    torch.default_generator.manual_seed(seed)
    if fabric.device.type == "cuda":
        torch.cuda.manual_seed(seed)


def over_devices(value: Tensor, fabric: Fabric) -> Tensor:
    """The sum over devices."""
    if fabric.world_size == 1:
        return value
    return fabric.all_reduce(value.clone(), reduce_op="sum")  # type: ignore[return-value]


def _sum_gradients(ensemble: Ensemble, fabric: Fabric) -> None:
    """Each device has the gradient of its part of the loss; add them up."""
    if fabric.world_size == 1:
        return
    gradients = [p.grad for p in ensemble.parameters() if p.grad is not None]
    flat = over_devices(torch.cat([g.flatten() for g in gradients]), fabric)
    for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
        gradient.copy_(part.view_as(gradient))
