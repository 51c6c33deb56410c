"""The tiny language models of the steering tests, for the tables that use them."""

from tests.steering.conftest import (  # noqa: F401
    build,
    corpus,
    llama,
    models,
    tokenizer,
)
