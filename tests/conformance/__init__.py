"""The public conformance suite: installed by `install`, driven by `client.py`, judged by `run.py`."""
