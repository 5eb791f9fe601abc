"""Errors that rooms without array libraries need to know."""


class MissingDataError(FileNotFoundError):
    """Data that were asked for are not there; the message says where they were looked for and how to get them."""
