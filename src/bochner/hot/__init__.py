"""The loops that carry the time; ``reference`` holds a plain NumPy twin of each."""
