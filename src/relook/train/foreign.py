"""Networks of torchvision and timm, where the user has them and their weights: nothing is downloaded or unpickled."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from relook.errors import BadInput, MissingExtra
from relook.train.frozen import Colours, Frozen, frozen_of


def network(package: str, name: str, *, weights: Path | None = None) -> Frozen:
    """Return a network of a package with weights: those of a file, else those that the package has got before."""
    if find_spec(package) is None:
        raise MissingExtra(f"embed: {package} was needed for {name}, but it is not installed; pip install {package}")
    return (_of_torchvision if package == "torchvision" else _of_timm)(name, weights)


class Headless(nn.Module):
    """A classifier without its last layer: what that would look at describes an image."""

    def __init__(self, classifier: nn.Module) -> None:
        super().__init__()
        self.classifier = classifier
        layers = [(name, layer) for name, layer in classifier.named_modules() if isinstance(layer, nn.Linear)]
        name, _ = layers[-1]
        above, _, own = name.rpartition(".")
        setattr(classifier.get_submodule(above), own, nn.Identity())

    def forward(self, x: Tensor) -> Tensor:
        """Return the features of a batch of images."""
        return self.classifier(x).flatten(1)


def _of_torchvision(name: str, weights: Path | None) -> Frozen:
    models = import_module("torchvision.models")
    if name not in models.list_models(models):
        raise BadInput(f"embed: torchvision has no network {name!r}; see torchvision.models.list_models()")
    known = models.get_model_weights(name).DEFAULT
    file = weights or Path(torch.hub.get_dir(), "checkpoints", known.url.rpartition("/")[2])
    prepared = known.transforms()
    built = models.get_model(name, weights=None)
    _fill(built, file, name=name)
    side = prepared.crop_size[0]
    return frozen_of(
        f"torchvision:{name}",
        Headless(built),
        side=side,
        mean=_colours(prepared.mean),
        deviation=_colours(prepared.std),
    )


def _of_timm(name: str, weights: Path | None) -> Frozen:
    timm = import_module("timm")
    if not timm.is_model(name):
        raise BadInput(f"embed: timm has no network {name!r}; see timm.list_models()")
    built = timm.create_model(name, pretrained=False)
    known = built.pretrained_cfg
    _fill(built, weights or _got_by_timm(known), name=name)
    built.reset_classifier(0)
    side = known["input_size"][1]
    return frozen_of(f"timm:{name}", built, side=side, mean=_colours(known["mean"]), deviation=_colours(known["std"]))


def _got_by_timm(known: Mapping[str, Any]) -> Path:
    """Return where the hub's own package keeps the weights of a network that it has got before."""
    found = None
    if known.get("hf_hub_id"):
        found = import_module("huggingface_hub").try_to_load_from_cache(known["hf_hub_id"], "model.safetensors")
    return Path(found) if isinstance(found, str) else Path("model.safetensors")


def _fill(built: nn.Module, file: Path, *, name: str) -> None:
    """Give a network the weights of a file of torch's or of safetensors."""
    from relook.pickledfiles import tensors

    if not file.is_file():
        raise BadInput(
            f"embed: weights of {name} were needed, but there is no {file}; get them once, or name their file"
        )
    if file.suffix == ".safetensors":
        from safetensors.torch import load_file

        state = load_file(file)
    else:
        state = {key: torch.from_numpy(value.copy()) for key, value in tensors(file).items()}
    try:
        built.load_state_dict(state)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise BadInput(
            f"{file}: weights that fit {name} were needed, but these do not ({reason}); name others"
        ) from None


def _colours(values: Any) -> Colours:
    first, second, third = map(float, values)
    return first, second, third
