"""LARS (You et al. 2017): each layer steps by a share of its own length, so that large batches do not run away."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn


class Lars:
    """Momentum SGD whose step in a weight matrix is scaled to the matrix; biases and norms step as in SGD, undecayed."""

    def __init__(self, parameters: Iterable[nn.Parameter], *, momentum: float = 0.9, decay: float = 1e-5) -> None:
        every = [each for each in parameters if each.requires_grad]
        self._matrices = [each for each in every if each.ndim > 1]
        self._others = [each for each in every if each.ndim <= 1]
        self._momentum, self._decay = momentum, decay
        self.memory = [torch.zeros_like(each) for each in [*self._matrices, *self._others]]

    @torch.no_grad()
    def step(self, rate: Tensor | float, trust: float = 0.001) -> None:
        """Take one step at a rate; gradients are left as they are."""
        weights, grads = list(self._matrices), [each.grad for each in self._matrices]
        lengths, slopes = torch._foreach_norm(weights), torch._foreach_norm(grads)
        scales = [
            torch.where((w > 0) & (g > 0), trust * w / (g + self._decay * w + 1e-9), torch.ones_like(w))
            for w, g in zip(lengths, slopes, strict=True)
        ]
        steps: list[Tensor] = torch._foreach_add(grads, weights, alpha=self._decay)
        torch._foreach_mul_(steps, scales)
        steps = [*steps, *(each.grad for each in self._others)]
        torch._foreach_mul_(self.memory, self._momentum)
        torch._foreach_add_(self.memory, steps)
        moves = torch._foreach_mul(self.memory, rate)
        torch._foreach_sub_([*self._matrices, *self._others], moves)

    def zero(self) -> None:
        """Forget the gradients."""
        for each in [*self._matrices, *self._others]:
            each.grad = None
