"""Builds the documentation's pages from docs/*.md: static, searchable offline, nothing loaded from elsewhere.

`python -m docs.builder` (or `make docs`) writes app/web/site.zip, which is committed and which the API serves at /docs.
"""
