"""Who may use which route: every route declares the role that it needs, and a test walks over all of them.

What a token is not for is refused in the same words as what does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Path, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from bursar.service.datasets import DataSets, Guest
from bursar.service.errors import refused
from bursar.service.people import Role

_BEARER = HTTPBearer(auto_error=False, description="A token, as `bursar user add` prints it.")


@dataclass(frozen=True)
class Needs:
    """A dependency of a route: a token for the data set in the path, of somebody with the role. An owner has both."""

    role: Role

    async def __call__(
        self,
        request: Request,
        data: Annotated[str, Path(description="The name of the data set.", examples=["people"])],
        bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)],
    ) -> Guest:
        datasets: DataSets = request.app.state.datasets
        guest = None if bearer is None else datasets.guest(bearer.credentials)
        if guest is None:
            raise refused(
                401, "token", "a token that is good is needed: Authorization: Bearer ...", WWW_Authenticate="Bearer"
            )
        if guest.data.name != data:
            raise refused(404, "data", "there is no such data set, or your token is not for it")
        if self.role is Role.OWNER and guest.person.role is not Role.OWNER:
            raise refused(403, "role", "only an owner of the data set may do this")
        return guest


Analyst = Annotated[Guest, Depends(Needs(Role.ANALYST))]
Owner = Annotated[Guest, Depends(Needs(Role.OWNER))]
