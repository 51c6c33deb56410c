"""One file per computed table: what is drawn, fitted and scored."""
