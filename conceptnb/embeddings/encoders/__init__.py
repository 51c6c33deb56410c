"""Any image encoder behind one interface, with the preprocessing of its own configuration."""

from conceptnb.embeddings.encoders.encoder import PRECISIONS, Encoder
