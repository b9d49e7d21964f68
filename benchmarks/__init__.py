"""Measurements against peers. A wrong answer has no time: every row carries a checked certificate."""
