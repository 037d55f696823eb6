"""What a table of configurations says of a model's states and tokens."""

from __future__ import annotations

from collections.abc import Iterator

from parapipe.cli.output import Row
from parapipe.digits import plain


def state_lines(document: Row) -> Iterator[str]:
    """Say which states the model has, and how many sequences would fill what waits for them."""
    if not (states := document.get("states")):
        return
    pairs = [f"{each['input']} ← {each['output']}" for each in states]
    more = f" and {len(pairs) - 2} more" if len(pairs) > 2 else ""
    sequences = document["inputs"].get("sequences") or 1
    turns = f"{sequences} sequences take turns" if sequences > 1 else "of one sequence"
    yield (
        f"states: {', '.join(pairs[:2])}{more}; each step waits for the one before, {turns} "
        "(--sequences)"
    )
    yield from _token_lines(document)
    by_count: dict[int, list[str]] = {}
    for row in document["configurations"]:
        if (count := row["sequences"]) > sequences:
            by_count.setdefault(count, []).append(row["id"])
    for count, ids in sorted(by_count.items()):
        yield f"states: {', '.join(ids)} would be filled by {count} sequences in turn"


def _token_lines(document: Row) -> Iterator[str]:
    """Say what the memory allows of tokens, and how long a prompt takes."""
    if not (tokens := document.get("tokens")):
        return
    if bound := tokens.get("bound_per_second"):
        read = tokens["weights_bytes"] + tokens["cache_bytes"]
        yield (
            f"tokens: at most {plain(bound, 3)} a second, for the {plain(read / 1e6, 3)} MB of "
            "weights and cache that the memory gives a step"
        )
    first = [row["first_token_s"] for row in document["configurations"] if "first_token_s" in row]
    if first:
        yield (
            f"tokens: the first one of a prompt of {tokens['per_step']} after "
            f"{plain(min(first) * 1e3, 3)} ms at best"
        )
