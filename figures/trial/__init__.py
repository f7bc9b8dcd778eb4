"""The trial of the paper's learning half: runs that decide claims, their store, the runner."""
