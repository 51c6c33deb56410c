"""What ``conceptnb NAME`` does: one module per command, imported when it is called."""
