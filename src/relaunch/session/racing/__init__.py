"""Racing: an order of threads that makes a program fail, found, repeated and made small."""
