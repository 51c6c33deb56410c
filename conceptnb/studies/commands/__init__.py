"""What each command of ``conceptnb`` runs, one module a command."""
