"""Networks in PyTorch that no package has in a form which its exporter takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Taken(nn.Module):  # type: ignore[misc]
    """A model of which a function takes some results, or gives it other arguments."""

    def __init__(self, model: nn.Module, take: Callable[..., Any]) -> None:
        super().__init__()
        self.model, self.take = model, take

    def forward(self, *given: torch.Tensor) -> Any:  # noqa: ANN401
        """Run the model."""
        return self.take(self.model, *given)


class Experts(nn.Module):  # type: ignore[misc]
    """Experts of which the router weighs the best few; all are computed."""

    def __init__(self, width: int, hidden: int, experts: int, chosen: int) -> None:
        super().__init__()
        self.chosen = chosen
        self.router = nn.Linear(width, experts, bias=False)
        self.up = nn.ModuleList(nn.Linear(width, hidden) for _ in range(experts))
        self.down = nn.ModuleList(nn.Linear(hidden, width) for _ in range(experts))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the weighted sum."""
        weights, chosen = torch.topk(self.router(x), self.chosen, -1)
        full = torch.zeros(*x.shape[:-1], len(self.up)).scatter(-1, chosen, weights.softmax(-1))
        each = zip(self.up, self.down, strict=True)
        made = [down(functional.silu(up(x))) for up, down in each]
        return sum(full[..., i : i + 1] * some for i, some in enumerate(made))


class ExpertLayer(nn.Module):  # type: ignore[misc]
    """Attention with a cache of keys and values, then experts."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.experts = Experts(width, 2 * width, 8, 2)

    def forward(self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> Any:  # noqa: ANN401
        """Return the result, and the cache with the new tokens behind it."""
        batch, tokens, width = x.shape
        split = self.qkv(self.before(x)).view(batch, tokens, 3, self.heads, -1)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        keys, values = torch.cat([keys, key], 2), torch.cat([values, value], 2)
        shares = (query @ keys.transpose(-1, -2) / (width / self.heads) ** 0.5).softmax(-1)
        x = x + self.out((shares @ values).transpose(1, 2).reshape(batch, tokens, width))
        return x + self.experts(self.between(x)), keys, values


class ExpertDecoder(nn.Module):  # type: ignore[misc]
    """A decoder with a mixture of experts in each layer."""

    def __init__(self, layers: int = 3, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1000, width)
        self.layers = nn.ModuleList(ExpertLayer(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, 1000)

    def forward(self, tokens: torch.Tensor, *cache: torch.Tensor) -> Any:  # noqa: ANN401
        """Return logits and the cache."""
        x, made = self.embedding(tokens), []
        for i, layer in enumerate(self.layers):
            x, *more = layer(x, *cache[2 * i : 2 * i + 2])
            made += more
        return (self.head(x), *made)


class Flow(nn.Module):  # type: ignore[misc]
    """Optical flow after RAFT (Teed and Deng, 2020): a pyramid of correlations, and updates."""

    def __init__(self, width: int = 32, updates: int = 4, levels: int = 4, radius: int = 3) -> None:
        super().__init__()
        self.updates, self.levels, self.side = updates, levels, 2 * radius + 1
        self.features, self.context = _encoder(width), _encoder(width)
        self.correlation = nn.Conv2d(levels * self.side**2, 32, 1)
        self.flow = nn.Conv2d(2, 16, 7, padding=3)
        self.motion = nn.Conv2d(48, width - 2, 3, padding=1)
        self.gates = nn.ModuleList(nn.Conv2d(3 * width, width, 3, padding=1) for _ in range(3))
        self.head = nn.Sequential(
            nn.Conv2d(width, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 2, 3, padding=1)
        )
        self.mask = nn.Conv2d(width, 64 * 9, 1)
        steps = torch.arange(-radius, radius + 1.0)
        around = torch.stack(torch.meshgrid(steps, steps, indexing="ij"), -1)
        self.register_buffer("around", around.view(1, self.side, self.side, 2))

    def forward(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Return the flow from one image to the other."""
        first, second = self.features(one), self.features(other)
        batch, width, height, length = first.shape
        every = first.flatten(2).transpose(1, 2) @ second.flatten(2) / width**0.5
        pyramid = [every.view(batch * height * length, 1, height, length)]
        for _ in range(self.levels - 1):
            pyramid.append(functional.avg_pool2d(pyramid[-1], 2, 2, ceil_mode=True))
        context = self.context(one)
        state, given = torch.tanh(context), torch.relu(context)
        rows, columns = torch.arange(float(height)), torch.arange(float(length))
        ys, xs = torch.meshgrid(rows, columns, indexing="ij")
        start = torch.stack([xs, ys])[None]
        places = start
        for _ in range(self.updates):
            near = torch.cat(
                [self._near(level, places / 2**i) for i, level in enumerate(pyramid)], -1
            )
            state = self._updated(state, given, near.permute(0, 3, 1, 2), places - start)
            places = places + self.head(state)
            upsampled = self._upsampled(state, places - start)
        return upsampled

    def _near(self, level: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        batch, _, height, length = places.shape
        at = places.permute(0, 2, 3, 1).reshape(-1, 1, 1, 2) + self.around
        xs = 2 * at[..., 0] / max(level.shape[-1] - 1, 1) - 1
        ys = 2 * at[..., 1] / max(level.shape[-2] - 1, 1) - 1
        found = functional.grid_sample(level, torch.stack([xs, ys], -1), align_corners=True)
        return found.view(batch, height, length, -1)

    def _updated(
        self, state: torch.Tensor, given: torch.Tensor, near: torch.Tensor, flow: torch.Tensor
    ) -> torch.Tensor:
        both = [torch.relu(self.correlation(near)), torch.relu(self.flow(flow))]
        x = torch.cat([given, torch.relu(self.motion(torch.cat(both, 1))), flow], 1)
        keep, reset = (torch.sigmoid(gate(torch.cat([state, x], 1))) for gate in self.gates[:2])
        new = torch.tanh(self.gates[2](torch.cat([reset * state, x], 1)))
        return (1 - keep) * state + keep * new

    def _upsampled(self, state: torch.Tensor, flow: torch.Tensor) -> torch.Tensor:
        batch, _, height, length = flow.shape
        mask = self.mask(state).view(batch, 1, 9, 8, 8, height, length).softmax(2)
        near = functional.unfold(8 * flow, 3, padding=1).view(batch, 2, 9, 1, 1, height, length)
        made = (mask * near).sum(2).permute(0, 1, 4, 2, 5, 3)
        return made.reshape(batch, 2, 8 * height, 8 * length)


def _encoder(width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 16, 7, 2, 3), nn.InstanceNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, width, 3, 2, 1), nn.InstanceNorm2d(width), nn.ReLU(),
        nn.Conv2d(width, width, 3, 2, 1),
    )  # fmt: skip
