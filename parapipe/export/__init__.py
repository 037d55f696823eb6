"""Plans and their models, written for runtimes."""
