"""Message passing: belief propagation, and the searches for fixed points built on it."""
