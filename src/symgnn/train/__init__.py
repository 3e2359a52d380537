"""Training, evaluation and prediction: configurations, ensembles, runs and metrics."""

from symgnn.train._config import Config, read_config
from symgnn.train._ensemble import Ensemble
from symgnn.train._fit import fit
from symgnn.train._memory import keep_memory
from symgnn.train._run_loading import load
from symgnn.train._run_metrics import evaluate
from symgnn.train._settings import Training
from symgnn.train._signals import Signals, signals
from symgnn.train._trained_run import Prediction, Run
from symgnn.train._training import finish, train

__all__ = [
    "Config",
    "Ensemble",
    "Prediction",
    "Run",
    "Signals",
    "Training",
    "evaluate",
    "finish",
    "fit",
    "keep_memory",
    "load",
    "read_config",
    "signals",
    "train",
]
