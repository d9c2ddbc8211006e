"""Errors in OpenAI's form: from an exception to an HTTP status and the body ``{"error": {...}}``."""

from __future__ import annotations

from typing import Any

from grammarspec.errors import BudgetTooSmall, GrammarError, GrammarspecError, LimitExceeded, PromptError

__all__ = ["Refused", "refusal_of"]

_LIMITS_HINT = "make it smaller; the server's limits are set where it is started (grammarspec serve --limits)"
_KINDS = {
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "server_error",
}


class Refused(Exception):
    """A request is refused, or has failed.

    Attributes:
        status: the HTTP status.
        message: what is wrong, where, and what to do about it.
        param: the field of the request that the error is about; ``None`` if it is about none.
        code: the kind of error, for programs.
        headers: further headers of the response.
    """

    def __init__(
        self,
        message: str,
        param: str | None = None,
        code: str = "invalid_request",
        status: int = 400,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code
        self.headers = headers or {}

    @property
    def body(self) -> dict[str, Any]:
        """The body of the response."""
        kind = _KINDS.get(self.status, "invalid_request_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


def refusal_of(error: BaseException, param: str | None = None, *, budget_field: str = "max_tokens") -> Refused:
    """The response to an error.

    Errors of grammars, prompts and limits are the client's (400). An error that is not known here is the server's
    (500), and the client does not get its text.

    Args:
        error: the error.
        param: the field of the request that was being read.
        budget_field: the field that gives the largest number of tokens.
    """
    if isinstance(error, Refused):
        return error
    if isinstance(error, PromptError):
        return Refused(str(error), "messages" if param is None else param, error.code)
    if isinstance(error, BudgetTooSmall):
        return Refused(str(error), budget_field, error.code)
    if isinstance(error, LimitExceeded) and "gs.Limits" in error.hint:  # which clients cannot give
        error = LimitExceeded(error.message, error.where, _LIMITS_HINT)
    if isinstance(error, GrammarError):  # limits included: a request that needs more work is the client's error
        return Refused(str(error), param, error.code)
    if isinstance(error, GrammarspecError):
        return Refused(str(error), param, error.code, 500)
    if param is not None and isinstance(error, TypeError | ValueError):  # what the front-ends raise for wrong arguments
        return Refused(str(error), param)
    return Refused("the request failed because of an error in the server; see its log", param, "internal_error", 500)
