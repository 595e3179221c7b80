"""The values of a form."""

from __future__ import annotations

from mcp_actors.elicitation.fields import Field, FieldType, Form


def test_a_form_names_its_secret_fields():
    """The fields that ask for a secret are found in order."""
    secret = Field("password", FieldType.STRING, "Password", asks_secret=True)

    assert Form((Field("name", FieldType.STRING, "Name"), secret)).secret_fields == (secret,)
