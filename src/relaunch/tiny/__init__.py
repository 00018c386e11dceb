"""Small data, small payloads, and where a payload lies: what a person debugs with."""
