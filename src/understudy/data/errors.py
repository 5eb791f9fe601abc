"""What can be wrong with data; without array libraries, so that the ledger can know."""


class MissingDataError(FileNotFoundError):
    """Data that were asked for are not there; the message says where they were looked for and how to get them."""


class WrongDataError(ValueError):
    """A file was found that is not what it claims to be."""
