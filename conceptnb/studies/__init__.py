"""One file per computed table: what is drawn, fitted and scored, and one runner for all."""

STUDIES: dict[str, tuple[str, str]] = {
    "theory": ("theory_tables", "the tables of the chapters on identifiability"),
}
"""What ``conceptnb reproduce`` offers: name -> module of this folder, and a line of help."""
