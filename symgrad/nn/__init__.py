"""`sg.nn`: activations, convolutions, pooling, normalisation and losses, as functions and modules.

>>> sg.nn.cross_entropy(sg.nn.gelu(x @ w) @ v, labels)
>>> net = sg.nn.Sequential(sg.nn.Linear(64, 32, key=k1), sg.relu, sg.nn.Linear(32, 10, key=k2))
>>> sg.nn.cross_entropy(net(x), labels)
"""

from symgrad.nn.activations import elu, gelu, selu, silu
from symgrad.nn.attention import MultiHeadAttention
from symgrad.nn.convolutions import AvgPool, Conv1d, Conv2d, ConvTranspose2d, MaxPool
from symgrad.nn.initializers import initial
from symgrad.nn.layers import (
    BatchNorm,
    Dropout,
    Embedding,
    Flatten,
    LayerNorm,
    Linear,
    Residual,
    Sequential,
)
from symgrad.nn.losses import bce_with_logits, cross_entropy, huber, kl_div, mse_loss
from symgrad.nn.losses import mse_loss as mse
from symgrad.nn.module import Module, parameter
from symgrad.nn.normalization import batch_norm, layer_norm
from symgrad.nn.recurrent import GRUCell, LSTMCell, RNNCell
from symgrad.nn.regularization import dropout
from symgrad.ops.activations import (
    hard_tanh,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    relu6,
    sigmoid,
    softmax,
    softplus,
)
from symgrad.ops.conv.convolution import conv, conv1d, conv2d, conv3d, conv_transpose
from symgrad.ops.conv.pooling import avg_pool, max_pool
from symgrad.ops.select import relu

__all__ = [
    "AvgPool",
    "BatchNorm",
    "Conv1d",
    "Conv2d",
    "ConvTranspose2d",
    "Dropout",
    "Embedding",
    "Flatten",
    "GRUCell",
    "LSTMCell",
    "LayerNorm",
    "Linear",
    "MaxPool",
    "Module",
    "MultiHeadAttention",
    "RNNCell",
    "Residual",
    "Sequential",
    "avg_pool",
    "batch_norm",
    "bce_with_logits",
    "conv",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose",
    "cross_entropy",
    "dropout",
    "elu",
    "gelu",
    "hard_tanh",
    "huber",
    "initial",
    "kl_div",
    "layer_norm",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "max_pool",
    "mse",
    "mse_loss",
    "parameter",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
]


def __dir__() -> list[str]:
    return __all__
