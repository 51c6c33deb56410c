"""3D Shapes: factors, rendered images, captions and the published data file (Appendix D)."""

from conceptnb.embeddings.shapes3d.captions import VAGUE, VOCABULARY, WORDS, captions
from conceptnb.embeddings.shapes3d.factors import (
    FACTORS,
    N_IMAGES,
    SHAPE_NAMES,
    SIZES,
    check_factors,
    factor_index,
    factor_labels,
    factors_to_index,
    held_out_combinations,
    hue_to_rgb,
    index_to_factors,
    sample_factors,
)
from conceptnb.embeddings.shapes3d.images import (
    PublishedShapes,
    RenderedShapes,
    ShapesImages,
    download,
)
from conceptnb.embeddings.shapes3d.renderer import Renderer
