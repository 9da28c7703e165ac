"""Errors of the bytes that a broker sent. The lane translates them; they never leave it."""


class Malformed(Exception):
    """
    The bytes are no record batches: a length or an offset cannot be right.

    The lane stops the partition, or drops the connection if the whole answer is unreadable.
    """


class Corrupt(Malformed):
    """
    A batch fails its checksum, or its records cannot be read.

    The lane stops the partition; an operator decides whether the batch is skipped.
    """
