"""The routes of the HTTP server."""

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from eos_mirror.driver.driver import Driver
from eos_mirror.driver.flow import FlowRunner
from eos_mirror.errors import ConfigError, MirrorError
from eos_mirror.rest.access import refusal
from eos_mirror.rest.answers import flow_answer, topic_answer
from eos_mirror.rest.orders import VERBS, give_order
from eos_mirror.settings.rest import RestSettings

READS: Final = frozenset({"GET", "HEAD"})
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
MAX_BODY: Final = 65_536


def app_of(settings: RestSettings, driver: Callable[[], Driver]) -> Starlette:
    """
    Return the application.

    Args:
        driver: Returns the driver that runs now.
    """
    routes = _Routes(driver)
    flow, topic = "/mirror/flows/{flow}", "/mirror/flows/{flow}/topics/{topic}"
    return Starlette(
        routes=[
            Route("/health", routes.live),
            Route("/live", routes.live),
            Route("/ready", routes.ready),
            Route("/metrics", routes.metrics),
            Route("/mirror/flows", routes.flows),
            Route(flow, routes.flow),
            Route(topic, routes.topic),
            Route(f"{flow}/{{verb}}", routes.order, methods=["PUT"]),
            Route(f"{topic}/{{verb}}", routes.order, methods=["PUT"]),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=_guard(settings))],
        exception_handlers={HTTPException: _failed, MirrorError: _refused, ValueError: _refused},
    )


def _guard(
    settings: RestSettings,
) -> Callable[[Request, RequestResponseEndpoint], Any]:
    async def dispatch(request: Request, call_next: RequestResponseEndpoint) -> Response:
        why = refusal(
            settings, request.url.path, request.headers, writes=request.method not in READS
        )
        return await call_next(request) if why is None else _error(*why)

    return dispatch


class _Routes:
    """Answers requests. Each runs in a thread of its own, because clusters may be asked."""

    def __init__(self, driver: Callable[[], Driver]) -> None:
        self._driver = driver

    def live(self, _: Request) -> Response:
        """200 while the driver's loop turns."""
        alive = self._driver().readiness.is_alive()
        return _state("live" if alive else "the driver does not look at its flows", alive)

    def ready(self, request: Request) -> Response:
        """200 once the run stands by or mirrors; with `?strict`, not while it is degraded."""
        readiness = self._driver().readiness
        is_good = readiness.is_on_standby or readiness.is_settled
        if is_good and readiness.is_degraded and "strict" in request.query_params:
            is_good = False
        return _state(readiness.state, is_good)

    def metrics(self, _: Request) -> Response:
        """The page that Prometheus scrapes."""
        page = self._driver().metrics.page
        if page is None:
            raise HTTPException(404, "metrics.exporters = prometheus is not set")
        return Response(page(), media_type=METRICS_TYPE)

    def flows(self, _: Request) -> Response:
        """Every flow of the run."""
        driver = self._driver()
        return JSONResponse([flow_answer(one, driver.readiness) for one in driver.flows])

    def flow(self, request: Request) -> Response:
        """One flow."""
        return JSONResponse(flow_answer(self._named(request), self._driver().readiness))

    def topic(self, request: Request) -> Response:
        """One source topic of a flow."""
        runner, topic = self._named(request), request.path_params["topic"]
        answer = topic_answer(runner, topic)
        if answer is None:
            raise HTTPException(404, f"{runner.flow} does not mirror {topic}")
        return JSONResponse(answer)

    async def order(self, request: Request) -> Response:
        """A verb of operators; 202 if the run has not reported in time."""
        runner, verb = self._named(request), request.path_params["verb"]
        if verb not in VERBS:
            raise HTTPException(404, f"{verb} is none of {', '.join(VERBS)}")
        if int(request.headers.get("content-length", 0)) > MAX_BODY:
            raise HTTPException(413, "the body is too long")
        body = json.loads(await request.body() or b"{}")
        topic = request.path_params.get("topic")
        answer = await run_in_threadpool(give_order, runner, verb, body, topic=topic)
        return JSONResponse(answer, HTTPStatus.OK if answer["done"] else HTTPStatus.ACCEPTED)

    def _named(self, request: Request) -> FlowRunner:
        name = request.path_params["flow"]
        for runner in self._driver().flows:
            if str(runner.flow) == name:
                return runner
        raise HTTPException(404, f"no flow {name}")


def _state(text: str, is_good: bool) -> Response:
    status = HTTPStatus.OK if is_good else HTTPStatus.SERVICE_UNAVAILABLE
    return JSONResponse({"status": text}, status)


def _error(status: int, text: str) -> Response:
    """Return an error as Kafka Connect does."""
    return JSONResponse({"error_code": int(status), "message": text}, status)


def _failed(_: Request, exc: Exception) -> Response:
    return _error(getattr(exc, "status_code", 500), getattr(exc, "detail", str(exc)))


def _refused(_: Request, exc: Exception) -> Response:
    is_wrong = isinstance(exc, (ConfigError, ValueError))
    return _error(HTTPStatus.BAD_REQUEST if is_wrong else HTTPStatus.SERVICE_UNAVAILABLE, str(exc))
