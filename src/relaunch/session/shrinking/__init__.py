"""Makes what reproduces a failure as small as it can be while it still fails the same way."""
