"""How images are drawn in the recipes of the paper, its code and our own."""

from __future__ import annotations

from relook.train.augment import View

FLIPPED = View(crop=(1.0, 1.0), ratio=1.0, flip=0.5, colour=0.0, grey=0.0)
"""Mirrored or not: what the paper leaves for a linear head on radiographs."""

_JITTER = {"brightness": 0.5, "contrast": 0.5, "saturation": 0.5, "hue": 0.0, "colour": 1.0, "grey": 0.0}
_AFFINE = {"rotation": 15.0, "shift": 0.05, "shear": 5.0, "beyond": "zeros"}
_TONES = {"brightness": 0.2, "contrast": 0.2, "saturation": 0.0, "hue": 0.0, "colour": 1.0, "grey": 0.0}

TEXT = View(crop=(1.0, 1.0), ratio=1.0, **_JITTER, **_AFFINE)  # type: ignore[arg-type]
"""Jitter, an affine map and flips; the text gives no strengths, so they are those of the released code."""

CODE = View(crop=(0.9, 1.0), **_JITTER, **_AFFINE)  # type: ignore[arg-type]
"""The same with a crop, which the released code turns on by default."""

CODE_HEAD = View(crop=(0.9, 1.0), **_JITTER)  # type: ignore[arg-type]
"""What the released code draws for a linear head: no affine map."""

RADIOGRAPH = View(crop=(0.8, 1.0), **_TONES, rotation=30.0, shear=15.0, beyond="zeros")  # type: ignore[arg-type]
"""What text and code draw of radiographs."""

SIMCLR = View(crop=(0.08, 1.0), brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1)
"""SimCLR's for small images: colours at half strength, no blur (Chen et al. 2020, appendix B.9)."""

BOLTS = View(crop=(0.08, 1.0), brightness=0.8, contrast=0.8, saturation=0.8, hue=0.2, blurred=0.5, sigma=(0.1, 2.0))
"""SimCLR's for large images, which the released code takes for small ones too."""


def cxr(*, elastic: float, noise: float, gamma: tuple[float, float] = (1.0, 1.0)) -> View:
    """Return what self-supervision draws of radiographs; text and code differ in these numbers."""
    return View(
        crop=(0.4, 1.0),
        **_TONES,  # type: ignore[arg-type]
        rotation=180.0,
        shear=40.0,
        beyond="zeros",
        elastic=elastic,
        bend=(34.0, 4.0),
        gamma=gamma,
        noise=noise,
        erased=0.5,
        hole=(0.15, 0.4),
    )
