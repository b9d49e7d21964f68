"""Allot for agents: tools of the Model Context Protocol, each of which goes through the API's own doors."""
