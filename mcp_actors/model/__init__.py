"""[door] For models: what one is offered, may call, and gets back."""
