"""Errors about data. This module imports no array library, so that the ledger can use it."""


class MissingDataError(FileNotFoundError):
    """The requested data were not found. The message says where they were searched for and how to get them."""


class WrongDataError(ValueError):
    """A file is not what it claims to be."""
