"""Context windows of well-known models, by their names at the provider.

Rule: only published numbers, and nothing for a name that may stand for several windows. The option ``context_window``
of a model comes first. The numbers are reported to clients and limit nothing.

Sources: the model cards of Amazon Bedrock and of OpenAI, November 2026.
"""

import re

WINDOWS: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(r"anthropic\.claude-"), 200_000),
    (re.compile(r"amazon\.nova-(lite|pro)-v1"), 300_000),
    (re.compile(r"amazon\.nova-micro-v1"), 128_000),
    (re.compile(r"amazon\.nova-premier-v1"), 1_000_000),
    (re.compile(r"meta\.llama3-[123]-"), 128_000),
    (re.compile(r"^gpt-4\.1(-|$)"), 1_047_576),
    (re.compile(r"^gpt-4o(-|$)"), 128_000),
    (re.compile(r"^gpt-5(-mini|-nano)?$"), 400_000),
    (re.compile(r"^o(1|3|3-mini|4-mini)$"), 200_000),
)


def known_window(name: str) -> int | None:
    return next((tokens for pattern, tokens in WINDOWS if pattern.search(name)), None)
