"""A model that is trained, as a user writes it."""

import io
from collections.abc import Callable

import smelt
from smelt import nn, optimizers


class MLP(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.layers = [nn.Linear(size, size) for _ in range(3)]
        self.norm = nn.LayerNorm(size)
        self.scale = smelt.ones((size,))

    def __call__(self, x: smelt.array) -> smelt.array:
        for layer in self.layers:
            x = nn.relu(layer(x))
        return self.norm(x) * self.scale


class Residual(nn.Module):
    def __init__(self, inner: nn.Module, size: int) -> None:
        super().__init__()
        self.inner, self.blocks = inner, [inner]
        self.head = nn.Sequential(nn.Linear(size, size), nn.ReLU())

    def __call__(self, x: smelt.array) -> smelt.array:
        for block in self.blocks:
            x = x + block(x)
        x = self.inner(x)
        return self.head(x)


model = MLP(4)
optimizer = optimizers.Adam(learning_rate=1e-3)
optimizer.init(model.trainable_parameters())


def loss(x: smelt.array, y: smelt.array) -> smelt.array:
    return nn.losses.mse_loss(model(x), y)


step: Callable[..., tuple[smelt.array, dict[str, smelt.array]]] = nn.value_and_grad(model, loss)
value, gradients = step(smelt.ones((2, 4)), smelt.ones((2, 4)))
gradients, norm = optimizers.clip_grad_norm(gradients, 1.0)
optimizer.update(model, gradients)
assert norm.item() >= 0 and round(value.item()) >= 0
print(Residual(model, 4)(smelt.ones((1, 4))), optimizer.apply_gradients(gradients, model).keys())
weights: dict[str, smelt.array] = {"scale": model.scale}
smelt.save_safetensors(io.BytesIO(), weights, {"of": "the model"})
optimizer.learning_rate = 0.1
model.freeze().unfreeze(keys=["weight"]).eval().train()
rate: smelt.array = optimizers.cosine_decay(0.1, 10)(smelt.array(3))
print(value, model.state, optimizer.state, model)
