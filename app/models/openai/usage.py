"""What a call cost, in AG-UI's accounting: totals, and parts of them.

OpenAI counts the same way. Some servers report reasoning or cached tokens beside the totals instead of within them;
where their numbers show it, those are added in. What a server does not report stays unknown.
"""

from collections.abc import Mapping

from ag_ui.core import TokenUsage

MAX_COUNT = 2**53 - 1


def usage_of(reported: Mapping[str, object], provider: str, model: str) -> TokenUsage | None:
    """The usage field of a chunk; None if it says nothing."""
    prompt, completion = _count(reported, "prompt_tokens"), _count(reported, "completion_tokens")
    if prompt is None and completion is None:
        return None
    reasoning = _detail(reported, "completion_tokens_details", "reasoning_tokens")
    cached, written = _cached(reported), _detail(reported, "prompt_tokens_details", "cache_write_tokens")
    input_tokens = _with_parts(prompt, (cached or 0) + (written or 0))
    output_tokens = _output(prompt, completion, reasoning or 0, _count(reported, "total_tokens"))
    known = input_tokens is not None and output_tokens is not None
    return TokenUsage(
        provider=provider,
        model=model,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=(input_tokens or 0) + (output_tokens or 0) if known else None,
        reasoning_tokens=reasoning,
        cached_input_tokens=cached,
        cache_write_input_tokens=written,
    )


def _output(prompt: int | None, completion: int | None, reasoning: int, total: int | None) -> int | None:
    """Completion tokens with the reasoning in them: xAI's total shows that it counts reasoning on its own."""
    beside = None not in (prompt, completion) and total == (prompt or 0) + (completion or 0) + reasoning
    return (completion or 0) + reasoning if beside else _with_parts(completion, reasoning)


def _with_parts(total: int | None, parts: int) -> int | None:
    """A total that is smaller than its parts does not contain them."""
    return total if total is None or total >= parts else total + parts


def _cached(reported: Mapping[str, object]) -> int | None:
    """Tokens read from the cache, as OpenAI, DeepSeek and Moonshot name them."""
    names = ("prompt_cache_hit_tokens", "cached_tokens")
    found = (_detail(reported, "prompt_tokens_details", "cached_tokens"), *(_count(reported, name) for name in names))
    return next((count for count in found if count is not None), None)


def _detail(reported: Mapping[str, object], group: str, name: str) -> int | None:
    details = reported.get(group)
    return _count(details, name) if isinstance(details, dict) else None


def _count(reported: Mapping[str, object], name: str) -> int | None:
    value = reported.get(name)
    return value if type(value) is int and 0 <= value <= MAX_COUNT else None
