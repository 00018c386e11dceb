"""Makes what reproduces a failure as small as it can be: what to try next, never running it."""
