"""The HTTP server of a run: health, metrics, states, and the verbs of operators."""
