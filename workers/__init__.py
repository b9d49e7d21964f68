"""A job and its life: queue, store, workers and whoever looks after them. No HTTP here; begin with job.py."""
