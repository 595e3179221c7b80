"""Structured content against output schemas: a flag, in bounded time, with either library or none."""

from __future__ import annotations

import pytest

from mcp_actors.tools import validation
from mcp_actors.tools.validation import Check, Fit, check_output, compile_jsonschema, compile_rust

N = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.fixture(params=["rust", "python"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run with each library alone."""
    compiler = {"rust": compile_rust, "python": compile_jsonschema}[request.param]
    pytest.importorskip({"rust": "jsonschema_rs", "python": "jsonschema"}[request.param])
    monkeypatch.setattr(validation, "_COMPILERS", (compiler,))
    validation._compile.cache_clear()
    yield request.param
    validation._compile.cache_clear()


@pytest.mark.parametrize(
    ("schema", "value", "fit"),
    [
        (N, {"n": 5}, Fit.VALID),
        (N, {"n": "5"}, Fit.INVALID),
        (N, {}, Fit.INVALID),
        (N, None, Fit.INVALID),
        ({}, None, Fit.VALID),
        ({"type": "array", "prefixItems": [{"type": "string"}], "items": False}, ["a"], Fit.VALID),
        ({"type": "array", "prefixItems": [{"type": "string"}], "items": False}, ["a", 1], Fit.INVALID),
        ({"$schema": "http://json-schema.org/draft-07/schema#", **N}, {"n": 5}, Fit.VALID),
        ({"$id": "https://evil.example/s", "$ref": "#/$defs/A", "$defs": {"A": N}}, {"n": 5}, Fit.VALID),
        ({"$ref": "#/$defs/A", "$defs": {"A": N}}, {"n": "5"}, Fit.INVALID),
        ({"properties": {"next": {"$ref": "#"}, "v": {"type": "string"}}}, {"next": {"next": {"v": 1}}}, Fit.INVALID),
        ({"type": "int"}, {}, Fit.UNCHECKED),
        ({"$ref": "https://evil.example/s.json"}, {}, Fit.UNCHECKED),
        ({"$ref": "#/$defs/none"}, {}, Fit.UNCHECKED),
        ({"$ref": "#"}, {}, Fit.UNCHECKED),
        ({"properties": {"a": {"$id": "https://evil.example/a", "$ref": "#/b"}}, "b": {}}, {"a": 1}, Fit.UNCHECKED),
        ({"allOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"not": {"$ref": "#/$defs/A"}}}}, {}, Fit.UNCHECKED),
    ],
)
def test_the_outcome(library: str, schema: dict[str, object], value: object, fit: Fit) -> None:
    """2020-12 decides; what cannot be checked is not invalid, and nothing is fetched (fault 84)."""
    check = check_output(schema, value, is_error=False)

    assert check is not None
    assert check.fit is fit
    assert bool(check.reason) is (fit is not Fit.VALID)


def test_errors_are_not_checked() -> None:
    """When the tool reports failure its text is what counts (fault 85)."""
    assert check_output(N, {"n": "5"}, is_error=True) is None
    assert check_output(None, {"n": "5"}, is_error=False) is None


def test_a_promise_that_is_not_kept() -> None:
    """A schema without structured content is told (fault 84)."""
    check = check_output(N, None, is_error=False, has_value=False)

    assert check == Check(Fit.INVALID, "the tool promises structured content and sent none")


def test_the_reason_names_the_place() -> None:
    """The reason says where and what, and is short however large the value."""
    check = check_output(
        {"properties": {"a": {"items": {"type": "integer"}}}}, {"a": [1, "x" * 10_000]}, is_error=False
    )

    assert check is not None
    assert check.reason.startswith("at a/1: ")
    assert len(check.reason) < 500


def doubling(levels: int) -> dict[str, object]:
    """Each definition names the next one twice."""
    definitions: dict[str, object] = {
        f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}, {"$ref": f"#/$defs/d{level + 1}"}]}
        for level in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{levels}": {"type": "object"}}}


def nested(levels: int) -> object:
    value: object = []
    for _ in range(levels):
        value = [value]
    return value


HOSTILE = [
    ({"properties": {"s": {"pattern": "^(a+)+$"}}}, {"s": "a" * 50_000 + "!"}),
    ({"properties": {"s": {"pattern": "^(?=a)(a|aa)+\\1$"}}}, {"s": "a" * 5_000 + "!"}),
    ({"patternProperties": {"^(a+)+$": {}}}, {"a" * 5_000 + "!": 1}),
    ({"pattern": "(((a{1000}){1000}){1000})"}, "a"),
    (doubling(60), {}),
    ({"items": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}, nested(100)),
    ({"items": {"$ref": "#"}}, nested(20_000)),
    ({"anyOf": [{"properties": {"a": {"items": {"type": "string"}}}}] * 5_000}, {"a": ["x"] * 50_000}),
    (
        {
            "$defs": {str(n): {"$anchor": f"x{n}"} for n in range(3_000)},
            "allOf": [{"$ref": f"#x{n}"} for n in range(3_000)],
        },
        {},
    ),
    ({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {}}}, ["x"] * 300_000),
]


@pytest.mark.parametrize(("schema", "value"), HOSTILE)
def test_hostile_schemas_take_bounded_time(library: str, schema: dict[str, object], value: object) -> None:
    """Patterns, doubling references and sizes that would run for ever give an outcome at once."""
    check = check_output(schema, value, is_error=False)

    assert check is not None


def test_without_a_library_nothing_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra the outcome says what to install."""

    def missing(schema: object) -> None:
        raise ImportError

    monkeypatch.setattr(validation, "_COMPILERS", (missing, missing))
    validation._compile.cache_clear()

    check = check_output(N, {}, is_error=False)
    validation._compile.cache_clear()

    assert check is not None
    assert check.fit is Fit.UNCHECKED
    assert "mcp-actors[validate]" in check.reason
