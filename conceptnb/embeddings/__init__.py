"""Concepts in any embedding: directions, components, and the embeddings themselves."""
