"""All that Allot knows of RQ, behind five verbs. No file outside this folder imports rq or spells out a key of RQ's.

    send     Line.send     a submitter puts a recorded job into its queue
    take     Hands.take    a worker takes the next job, as an execution of its own
    renew    Held.renew    the worker that has a job says that it still has it
    done     Held.done     the worker gives the job back: ended, dropped, to be run again, or failed
    revoke   Lost.revoke   a janitor takes jobs from workers that fell silent; LUA's revoke takes one out of its queue

RQ carries ids and nothing else: what a job is stands in Allot's own record. Its insides change between versions, so
pyproject.toml bounds it, docs/notes/rq.md lists each fact that is built on here, and `make wheel` runs a job on the
newest version that the bound allows.
"""

from workers.rq.hands import Fate, Hands, Held
from workers.rq.line import Line
from workers.rq.lost import Lost
from workers.rq.names import LUA

__all__ = ["LUA", "Fate", "Hands", "Held", "Line", "Lost"]
