"""Any image encoder behind one interface, with the preprocessing of its own configuration."""

from conceptnb.embeddings.encoders.encoder import PRECISIONS, Encoder
from conceptnb.embeddings.encoders.loading import load_encoder
