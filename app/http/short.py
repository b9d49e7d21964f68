"""A route whose guards are called in an order that is settled once, for requests that are small and many.

FastAPI walks the tree of a route's dependencies for every request, which takes longer than all the guards of a small
job. Here the tree is walked when the route is made: what each guard is given is the request, or the answer of another.
`Straight` takes a request to such a route by its path, past the router and the layers around it.
"""

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar, get_args

from fastapi import FastAPI, Request, Response
from fastapi.params import Depends
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

SAID = "allot.said"
"""In a scope: what was made of the very same headers before, on the same connection."""
Function = Callable[..., Awaitable[Any]]
Step = tuple[Function, tuple[int, ...]]
"""A function, and what each of its parameters is given: 0 is the request, k the answer of step k - 1."""
T = TypeVar("T")


class Known(Headers):
    """Headers of a request that are looked up by name again and again: of those of one name, the first counts."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope=scope)
        self._first = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(self._list)}

    def __getitem__(self, key: str) -> str:
        return self._first[key.lower()]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key.lower() in self._first

    def get(self, key: str, default: Any = None) -> Any:
        """The first value of that name."""
        return self._first.get(key.lower(), default)


def said(request: Request, read: Callable[[Headers], T]) -> T:
    """What `read` makes of the request's headers, and of nothing else.

    A client says the same in each of its requests on a connection: it is read once. What `read` raises is not kept.
    """
    known: dict[Any, Any] | None = request.scope.get(SAID)
    if known is None:
        return read(request.headers)
    if read not in known:
        known[read] = read(request.headers)
    found: T = known[read]
    return found


class Asked(Request):
    """A request that is asked for its headers a dozen times."""

    app: Any = None
    """What answers it."""
    headers: Headers = Headers()
    """By name."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        super().__init__(scope, receive, send)
        made: dict[Any, Any] = scope.get(SAID, {})
        if Known not in made:
            made[Known] = Known(scope)
        self.app, self.headers = scope["app"], made[Known]


class Short(APIRoute):
    """Takes coroutines alone, whose parameters are the request or such dependencies."""

    handler: Callable[[Request], Coroutine[Any, Any, Response]]

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Called by FastAPI once: what answers a request.

        Raises:
            TypeError: a guard is no coroutine, or wants something else.
        """
        steps: list[Step] = []
        for guard in (*self.dependencies, Depends(self.endpoint)):
            _settle(guard.dependency, steps)

        each = [(function, wants, wants[0] if len(wants) == 1 else None) for function, wants in steps]

        async def handle(request: Request) -> Response:
            known: list[Any] = [request]
            for function, wants, one in each:
                if one is not None:
                    known += (await function(known[one]),)
                else:
                    known += (await function(*[known[number] for number in wants]),)
            answer: Response = known[-1]
            return answer

        self.handler = handle
        return handle


class Straight:
    """Middleware, the last before the router: whatever goes to a short route has no need of it.

    An exception is answered by the handler that the application has for it, as everywhere else. What has no handler of
    its own goes on to whoever is around.
    """

    def __init__(self, app: ASGIApp, service: FastAPI) -> None:
        self._app, self._handlers = app, service.exception_handlers
        self._routes = {
            (verb, route.path): route
            for route in service.routes
            if isinstance(route, Short)
            for verb in route.methods or ()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of a short route; pass all others on."""
        route = self._routes.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if route is None or scope.get("root_path"):
            await self._app(scope, receive, send)
            return
        scope["route"], scope["endpoint"], scope["path_params"] = route, route.endpoint, {}
        request = Asked(scope, receive, send)
        try:
            answer = await route.handler(request)
        except Exception as wrong:
            known = next((kind for kind in type(wrong).__mro__ if kind in self._handlers), Exception)
            if known is Exception:
                raise
            found = self._handlers[known](request, wrong)
            answer = found if isinstance(found, Response) else await found
        await answer(scope, receive, send)


def _settle(function: Any, steps: list[Step]) -> int:
    """Add a function behind all that it depends on, unless it is there; the number of its answer."""
    for number, (known, _) in enumerate(steps, 1):
        if known is function:
            return number
    if not inspect.iscoroutinefunction(function):
        raise TypeError(f"{function} is no coroutine, so it would need a thread")
    wants: list[int] = []
    for name, parameter in inspect.signature(function).parameters.items():
        depends = [one for one in get_args(parameter.annotation)[1:] if isinstance(one, Depends)]
        if (parameter.annotation is not Request and not depends) or parameter.kind is parameter.KEYWORD_ONLY:
            raise TypeError(f"{function} wants {name}, which is neither the request nor a dependency")
        wants.append(_settle(depends[0].dependency, steps) if depends else 0)
    steps.append((function, tuple(wants)))
    return len(steps)
