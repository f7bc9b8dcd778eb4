"""What a figure is, and how its data are computed, stored and drawn."""
