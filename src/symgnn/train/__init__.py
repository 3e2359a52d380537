"""Training."""

from symgnn.train.config import Config
from symgnn.train.ensemble import Ensemble
from symgnn.train.fit import fit
from symgnn.train.memory import keep_memory
from symgnn.train.settings import Training
from symgnn.train.signals import Signals, signals
from symgnn.train.trained_run import Prediction, Run, load

__all__ = [
    "Config",
    "Ensemble",
    "Prediction",
    "Run",
    "Signals",
    "Training",
    "fit",
    "keep_memory",
    "load",
    "signals",
]
