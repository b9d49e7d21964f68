"""Answers whose proof came out loose, solved again in other arithmetic."""
