"""Neural networks, under the names of `mlx.nn`: modules, layers, activations, losses, initial values.

>>> import smelt
>>> model = smelt.nn.Sequential(smelt.nn.Linear(2, 8), smelt.nn.ReLU(), smelt.nn.Linear(8, 1))
>>> model(smelt.ones((4, 2))).shape
(4, 1)
"""

from __future__ import annotations

from . import init, layers, losses, pictures, utils
from .layers import activations as _activations  # noqa: F401  # MLX programs name it
from .layers import places as _places  # noqa: F401  # errors name the path of a layer
from .layers.activation_functions import *
from .layers.activation_layers import *
from .layers.adaptive_pooling import *
from .layers.base import Module
from .layers.containers import Flatten, Sequential
from .layers.convolution import Conv1d, Conv2d, Conv3d
from .layers.convolution_transpose import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .layers.distributed import (
    AllToShardedLinear,
    FullyShardedModule,
    QuantizedAllToShardedLinear,
    QuantizedShardedToAllLinear,
    ShardedToAllLinear,
    fully_shard,
)
from .layers.dropout import Dropout, Dropout2d, Dropout3d
from .layers.embedding import Embedding
from .layers.embedding_bag import EmbeddingBag
from .layers.linear import Bilinear, Identity, Linear
from .layers.normalization import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from .layers.parametrized import SpectralNorm, WeightNorm
from .layers.pooling import AvgPool1d, AvgPool2d, AvgPool3d, MaxPool1d, MaxPool2d, MaxPool3d
from .layers.positional_encoding import ALiBi, RoPE, SinusoidalPositionalEncoding
from .layers.quantized import QQLinear, QuantizedEmbedding, QuantizedLinear, quantize
from .layers.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from .layers.transformer import (
    MultiHeadAttention,
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from .layers.upsample import Upsample
from .utils import average_gradients, value_and_grad

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "GRU", "LSTM", "RNN", "SELU", "ALiBi", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AllToShardedLinear",
    "AvgPool1d", "AvgPool2d", "AvgPool3d", "BatchNorm", "Bilinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
    "ConvTranspose2d", "ConvTranspose3d", "Dropout", "Dropout2d", "Dropout3d", "Embedding", "EmbeddingBag", "Flatten",
    "FullyShardedModule", "GRUCell", "GroupNorm", "HardShrink", "HardTanh", "Hardswish", "Identity", "InstanceNorm",
    "LSTMCell", "LayerNorm", "LeakyReLU", "Linear", "LogSigmoid", "LogSoftmax", "MaxPool1d", "MaxPool2d", "MaxPool3d",
    "Mish", "Module", "MultiHeadAttention", "PReLU", "QQLinear", "QuantizedAllToShardedLinear", "QuantizedEmbedding",
    "QuantizedLinear", "QuantizedShardedToAllLinear", "RMSNorm", "RNNCell", "ReLU", "ReLU2", "ReLU6", "RoPE",
    "Sequential", "ShardedToAllLinear", "SiLU", "Sigmoid", "SinusoidalPositionalEncoding", "Softmax", "Softmin",
    "Softplus", "Softshrink", "Softsign", "SpectralNorm", "Step", "Tanh", "Transformer", "TransformerDecoder",
    "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer", "Upsample", "WeightNorm",
    "average_gradients", "celu", "elu", "fully_shard", "gelu", "gelu_approx", "gelu_fast_approx", "glu", "hard_shrink",
    "hard_tanh", "hardswish", "init", "layers", "leaky_relu", "log_sigmoid", "log_softmax", "losses", "mish",
    "pictures", "prelu", "quantize", "relu", "relu2", "relu6", "selu", "sigmoid", "silu", "softmax", "softmin",
    "softplus", "softshrink", "softsign", "step", "tanh", "utils", "value_and_grad",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
