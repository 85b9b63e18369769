"""The layers of `smelt.nn`, a file a family. Their names are those of this package too, as in MLX."""

from __future__ import annotations

from .activation_functions import *
from .activation_layers import *
from .adaptive_pooling import *
from .base import Module
from .containers import Flatten, Sequential
from .convolution import Conv1d, Conv2d, Conv3d
from .convolution_transpose import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .distributed import (
    AllToShardedLinear,
    FullyShardedModule,
    QuantizedAllToShardedLinear,
    QuantizedShardedToAllLinear,
    ShardedToAllLinear,
    fully_shard,
)
from .dropout import Dropout, Dropout2d, Dropout3d
from .embedding import Embedding
from .embedding_bag import EmbeddingBag
from .linear import Bilinear, Identity, Linear
from .normalization import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from .parametrized import SpectralNorm, WeightNorm
from .pooling import AvgPool1d, AvgPool2d, AvgPool3d, MaxPool1d, MaxPool2d, MaxPool3d
from .positional_encoding import ALiBi, RoPE, SinusoidalPositionalEncoding
from .quantized import QQLinear, QuantizedEmbedding, QuantizedLinear, quantize
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from .transformer import (
    MultiHeadAttention,
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from .upsample import Upsample

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
    "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer", "Upsample", "WeightNorm", "celu",
    "elu", "fully_shard", "gelu", "gelu_approx", "gelu_fast_approx", "glu", "hard_shrink", "hard_tanh", "hardswish",
    "leaky_relu", "log_sigmoid", "log_softmax", "mish", "prelu", "quantize", "relu", "relu2", "relu6", "selu",
    "sigmoid", "silu", "softmax", "softmin", "softplus", "softshrink", "softsign", "step", "tanh",
]  # fmt: skip
