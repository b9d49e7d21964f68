"""A third, slow implementation of the certificates, to be read: whole numbers and 60 decimal digits, nothing else.

NumPy reads the arrays; all arithmetic is Python's integers, fractions and decimals. Nothing here is shared with a
solver or with the certificates that answer jobs.
"""
