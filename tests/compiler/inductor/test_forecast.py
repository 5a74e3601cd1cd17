"""Random models under random plans: the forecast of the peak against a dry run of the code that Inductor generates."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from autockpt.cost_models import load_profile
from autockpt.inductor import inductor_rules
from autockpt.inductor.fake.step import from_model
from autockpt.inductor.fake.trace import trace
from autockpt.inductor.joint import JointModule
from autockpt.passes.forecast.candidate import Evaluator
from autockpt.passes.planners.decide import pose
from autockpt.passes.problem import savable_set
from autockpt.passes.problem.plan import Budget, Setup

TOKENS, WIDTH = 2048, 96
TOLERANCE = 0.03
SLACK_BYTES = TOKENS * WIDTH * 4 + 128 * 2**10
"""One activation, of about twenty at the peak, and what a forecast adds for scalars and seeds.

Whether Inductor writes a result in place, or where it realizes it, is not always forecast. Known to be off by more, and
not among the seeds below: seeds 17 and 18, whose forecasts are two activations too high.
"""


class Residual(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x)


class Apply(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


class Concatenate(nn.Module):
    """The input beside a function of it, then mixed."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.mix = nn.Linear(WIDTH, WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.mix(torch.cat((torch.tanh(self.one(x)), x), dim=-1))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.enter(x).unflatten(-1, (3, 4, WIDTH // 4)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(*heads.unbind(0))
        return self.leave(mixed.transpose(1, 2).flatten(2))


class Image(nn.Module):
    """Tokens as an image: a convolution to half the resolution, upsampling, and a convolution back."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.norm = nn.Conv2d(WIDTH, 32, 3, stride=2, padding=1), nn.GroupNorm(4, 32)
        self.up = nn.Conv2d(32, WIDTH, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        image = x.transpose(1, 2).unflatten(2, (8, 16))
        small = F.silu(self.norm(self.down(image)))
        return self.up(F.interpolate(small, scale_factor=2.0)).flatten(2).transpose(1, 2)


def shifted(x: Tensor) -> Tensor:
    """Each token with the one before it."""
    return x * torch.sigmoid(F.pad(x, (0, 0, 1, 0))[:, :-1])


def normalized(x: Tensor) -> Tensor:
    return x * torch.rsqrt((x * x).mean(dim=-1, keepdim=True) + 1e-6)


LAYERS: tuple[Callable[[], nn.Module], ...] = (
    lambda: nn.Linear(WIDTH, WIDTH),
    lambda: nn.Sequential(nn.Linear(WIDTH, 3 * WIDTH), nn.GELU(), nn.Linear(3 * WIDTH, WIDTH)),
    lambda: nn.LayerNorm(WIDTH),
    lambda: nn.Dropout(0.1),
    lambda: nn.SiLU(),
    lambda: Apply(lambda x: torch.softmax(x, dim=-1)),
    lambda: Apply(shifted),
    lambda: Apply(normalized),
    Concatenate,
    Attention,
    Image,
)


class RandomModel(nn.Module):
    def __init__(self, dice: Random) -> None:
        super().__init__()
        parts = [self._part(dice) for _ in range(dice.randint(3, 5))]
        self.layers = nn.Sequential(*parts, nn.Linear(WIDTH, WIDTH))

    @staticmethod
    def _part(dice: Random) -> nn.Module:
        layers = [dice.choice(LAYERS)() for _ in range(dice.randint(1, 3))]
        return Residual(*layers) if dice.random() < 0.6 else nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x).square().mean()


@pytest.mark.parametrize("seed", range(5))
def test_the_forecast_of_a_random_model_is_the_peak_of_its_dry_run(seed: int) -> None:
    dice = Random(seed)
    forecasts: list[int] = []
    compiled: list[int] = []

    def compare(joint: JointModule) -> None:
        problem = pose(joint.graph, Setup(Budget(), load_profile("cpu"), margin=0.0, rules=inductor_rules()))
        evaluator, read = Evaluator(problem), sorted(joint.graph.backward_reads)
        for saved in (read, dice.sample(read, len(read) // 2), []):
            plan = evaluator.schedule(savable_set(problem, saved))
            forecasts.append(evaluator.simulator.peak_bytes(plan))
            compiled.append(joint.dry_run(joint.modules(plan)).peak_bytes + joint.graph.graph_input_bytes)

    torch.manual_seed(seed)
    model, x = RandomModel(dice), torch.randn(TOKENS, WIDTH)
    trace(from_model(model, (x.unflatten(0, (16, -1)),), {}, torch.device("cpu")), compare)

    assert len(compiled) == 3
    assert forecasts == pytest.approx(compiled, rel=TOLERANCE, abs=SLACK_BYTES)
    exact = [abs(one - other) <= 0.01 * other for one, other in zip(forecasts, compiled, strict=True)]
    assert sum(exact) >= 2, (forecasts, compiled)
