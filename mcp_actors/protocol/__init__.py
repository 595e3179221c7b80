"""[pure] How MCP talks."""
