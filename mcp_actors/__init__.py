"""mcp_actors: the runtime that keeps a whole fleet of MCP servers alive.

The map: ``head -qn1 mcp_actors/*/__init__.py | sort`` prints the rooms and the law that holds in each.
"""
