"""[door] For models.          What a model is offered, may call, and gets back."""
