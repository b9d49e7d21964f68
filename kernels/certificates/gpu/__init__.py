"""The second implementation of the certificates, for the device: plain sweeps over the data where they lie.

It shares no code with a solver, with the CPU's certificates or with their common device header (a test reads the
includes and the imports). What it cannot show, or does not know, is left to the CPU's certificate: every entry point
returns None for it. docs/trust.md, "On the device", says what it proves and in which arithmetic.
"""
