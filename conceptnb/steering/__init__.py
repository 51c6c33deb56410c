"""Steering a language model (paper: Section 6 and Appendix E)."""
