"""[live] Who answers when a server asks."""
