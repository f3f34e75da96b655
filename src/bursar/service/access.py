"""Who may use which route: every route declares the role that it needs, and a test walks over all of them.

What a token is not for is refused in the same words as what does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Path, Request, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from bursar.service.datasets import Guest
from bursar.service.errors import refused
from bursar.service.people import Role

GUARDED = ("/v1/", "/metrics")
"""What begins like this is for nobody without a token; the wall sees to it."""


OPEN = ("/healthz", "/readyz", "/openapi.json", "/docs", "/docs.css")
"""What everybody may see: nothing about any data set, nor who asks."""


async def described(
    data: Annotated[str, Path(description="The name of the data set.", examples=["demo-people"])],
    bearer: Annotated[
        HTTPAuthorizationCredentials | None,
        Security(HTTPBearer(auto_error=False, description="A token, as `bursar user add` prints it.")),
    ],
) -> None:
    """What the OpenAPI says about all routes of a data set; the wall has looked at the token already."""


@dataclass(frozen=True)
class Needs:
    """What a route depends on: somebody with the role, for the data set in the path. An owner is an analyst as well."""

    role: Role

    async def __call__(self, request: Request) -> Guest:
        guest: Guest = request.state.guest
        if request.path_params.get("data", guest.data.name) != guest.data.name:
            raise refused(404, "data", "there is no such data set, or your token is not for it")
        if self.role is Role.OWNER and guest.person.role is not Role.OWNER:
            raise refused(403, "role", "only an owner of the data set may do this")
        return guest


asks = Needs(Role.ANALYST)
Analyst = Annotated[Guest, Depends(asks)]
Owner = Annotated[Guest, Depends(Needs(Role.OWNER))]


def role_of(route: APIRoute) -> Role | None:
    """The role that a route declares; None where it declares none."""
    dependencies = list(route.dependant.dependencies)
    while dependencies:
        dependency = dependencies.pop()
        if isinstance(dependency.call, Needs):
            return dependency.call.role
        dependencies += dependency.dependencies
    return None
