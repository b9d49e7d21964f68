"""The workbench: its built pages, and what these need of the server beyond the API."""
