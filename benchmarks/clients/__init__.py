"""The measured clients: each runs in a process of its own and prints one JSON object of measures."""
