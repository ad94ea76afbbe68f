"""`sg.nn`: activations, convolutions, pooling, normalisation and losses, as functions and modules.

>>> sg.nn.cross_entropy(sg.nn.gelu(x @ w) @ v, labels)
>>> net = sg.nn.Sequential(sg.nn.Linear(64, 32, key=k1), sg.relu, sg.nn.Linear(32, 10, key=k2))
>>> sg.nn.cross_entropy(net(x), labels)
"""

import typing as _typing

from symgrad.ir.elsewhere import absent as _absent
from symgrad.ir.namespace import public_names as _public_names
from symgrad.nn.activations import elu as elu
from symgrad.nn.activations import gelu as gelu
from symgrad.nn.activations import selu as selu
from symgrad.nn.activations import silu as silu
from symgrad.nn.attention import MultiHeadAttention as MultiHeadAttention
from symgrad.nn.convolutions import AvgPool as AvgPool
from symgrad.nn.convolutions import Conv1d as Conv1d
from symgrad.nn.convolutions import Conv2d as Conv2d
from symgrad.nn.convolutions import ConvTranspose2d as ConvTranspose2d
from symgrad.nn.convolutions import MaxPool as MaxPool
from symgrad.nn.initializers import initial as initial
from symgrad.nn.layers import BatchNorm as BatchNorm
from symgrad.nn.layers import Dropout as Dropout
from symgrad.nn.layers import Embedding as Embedding
from symgrad.nn.layers import Flatten as Flatten
from symgrad.nn.layers import LayerNorm as LayerNorm
from symgrad.nn.layers import Linear as Linear
from symgrad.nn.layers import Residual as Residual
from symgrad.nn.layers import Sequential as Sequential
from symgrad.nn.losses import bce_with_logits as bce_with_logits
from symgrad.nn.losses import cross_entropy as cross_entropy
from symgrad.nn.losses import huber as huber
from symgrad.nn.losses import kl_div as kl_div
from symgrad.nn.losses import mse_loss as mse_loss
from symgrad.nn.module import Module as Module
from symgrad.nn.module import parameter as parameter
from symgrad.nn.normalization import batch_norm as batch_norm
from symgrad.nn.normalization import layer_norm as layer_norm
from symgrad.nn.recurrent import Bidirectional as Bidirectional
from symgrad.nn.recurrent import GRUCell as GRUCell
from symgrad.nn.recurrent import LSTMCell as LSTMCell
from symgrad.nn.recurrent import RNNCell as RNNCell
from symgrad.nn.recurrent import sample as sample
from symgrad.nn.regularization import dropout as dropout
from symgrad.ops.activations import hard_tanh as hard_tanh
from symgrad.ops.activations import leaky_relu as leaky_relu
from symgrad.ops.activations import log_sigmoid as log_sigmoid
from symgrad.ops.activations import log_softmax as log_softmax
from symgrad.ops.activations import relu6 as relu6
from symgrad.ops.activations import sigmoid as sigmoid
from symgrad.ops.activations import softmax as softmax
from symgrad.ops.activations import softplus as softplus
from symgrad.ops.conv.convolution import conv as conv
from symgrad.ops.conv.convolution import conv1d as conv1d
from symgrad.ops.conv.convolution import conv2d as conv2d
from symgrad.ops.conv.convolution import conv3d as conv3d
from symgrad.ops.conv.convolution import conv_transpose as conv_transpose
from symgrad.ops.conv.pooling import avg_pool as avg_pool
from symgrad.ops.conv.pooling import max_pool as max_pool
from symgrad.ops.select import relu as relu

mse = mse_loss

__all__ = _public_names(globals())

if not _typing.TYPE_CHECKING:  # which would take any name for one of these
    __getattr__ = _absent("nn", __all__)


def __dir__() -> list[str]:
    return __all__
