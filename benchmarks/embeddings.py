"""Ratios of `conceptnb.embeddings`: rendering, embedding, and pairwise regressions."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsOneClassifier

from benchmarks.measure import Benchmark, cpu_seconds
from conceptnb.embeddings import clip, directions, shapes3d


def benchmarks() -> list[Benchmark]:
    """Return the comparisons of this part."""
    return [_rendering(), _embedding(), _regressions()]


def _rendering() -> Benchmark:
    render, views = shapes3d.Renderer(64), 480
    factors = shapes3d.sample_factors(4000, np.random.default_rng(0))
    trace = shapes3d.renderer._bank.__wrapped__
    return Benchmark(
        "composing an image of 64 pixels from masks",
        "tracing the rays of an image",
        cpu_seconds(lambda: render(factors), len(factors)),
        cpu_seconds(lambda: trace(64, 3), views),
        repeats=3,
        at_least=20,
    )


def _embedding() -> Benchmark:
    """Of what embedding costs, nearly all is the model: in memory and in shards on the disk."""
    model, shapes = clip.load_encoder("small-vit"), shapes3d.RenderedShapes(clip.SMALL_SIZE)
    index = np.arange(0, shapes3d.N_IMAGES, 240)
    images = model.prepare(shapes.images(index))

    @torch.inference_mode()
    def forward() -> None:
        for start in range(0, len(images), 256):
            model.model.encode_image(images[start : start + 256])

    return Benchmark(
        "the image encoder's forward pass",
        "rendering, preprocessing and embedding in shards",
        cpu_seconds(forward, len(index)),
        cpu_seconds(lambda: clip.embed_images(model, shapes, index), len(index)),
        repeats=3,
    )


def _regressions() -> Benchmark:
    """Ten hues: 45 regressions in 64 dimensions on 3,000 images."""
    found = clip.embed_rendered(3000, np.random.default_rng(0), ["small-vit"])
    Z, hue = found.embeddings["small-vit"].astype(float), found.labels["object_hue"]
    plain = OneVsOneClassifier(LogisticRegression(tol=1e-6, max_iter=1000))
    return Benchmark(
        "45 pairwise regressions by Newton's method",
        "the same by scikit-learn's default solver to the same tolerance",
        cpu_seconds(lambda: directions.pairwise_regressions(Z, hue)),
        cpu_seconds(lambda: plain.fit(Z, hue)),
        repeats=3,
    )
