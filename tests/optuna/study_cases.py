"""What the tests of studies read of their data."""

from botorch_skewgp.hosts.entries import Comparison, Selected


def preferences(data):
    return tuple(told.items for told in data.judgements if isinstance(told, Comparison) and not told.tie)


def ties(data):
    return tuple(told.items for told in data.judgements if isinstance(told, Comparison) and told.tie)


def choices(data):
    return tuple(told.items for told in data.judgements if isinstance(told, Selected))


def judges(data):
    """The judge of each judgement of one kind, by its rows."""
    return {told.items: told.judge for told in data.judgements}
