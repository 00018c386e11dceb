"""Payloads as files: written, and read as something to be like, without their libraries."""
