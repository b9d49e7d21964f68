"""All that Allot knows of RQ, behind five verbs. No file outside this folder imports rq or spells out a key of RQ's.

    send     LUA's rq_push                a script hands a recorded job to the list from which idle workers take
    take     LUA's rq_start               a worker is given the next job, as an execution of its own
    renew    Held.renew                   the worker that has a job says that it still has it
    done     LUA's rq_end, Held.done      the job has ended, with its record; or it is dropped, runs again, or failed
    revoke   Lost.revoke, rq_forget       a janitor takes jobs from workers that fell silent; a script takes one back

RQ carries ids and nothing else: what a job is stands in Allot's own record. What must not come apart from a change of
that record is Lua (books.lua), so that one script makes both. RQ's insides change between versions, so pyproject.toml
bounds it, docs/notes/rq.md lists each fact that is built on here, and `make wheel` runs a job on the newest version
that the bound allows.
"""

from workers.rq.books import DEQUEUE_S
from workers.rq.hands import Fate, Hands, Held
from workers.rq.line import Line
from workers.rq.lost import Lost
from workers.rq.names import BELL, LUA, stamp

__all__ = ["BELL", "DEQUEUE_S", "LUA", "Fate", "Hands", "Held", "Line", "Lost", "stamp"]
