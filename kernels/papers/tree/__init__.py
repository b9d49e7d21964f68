"""Alternating trees from all free rows at once, after Date and Nagi (2016)."""
