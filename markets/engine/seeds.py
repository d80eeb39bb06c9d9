"""Seeds by name: every random draw of the project starts here.

`derive_seed` mixes any number of names and numbers with SHA-256, so the same parts give the same
stream in every process and on every machine. No generator is kept: callers own theirs.
"""

import hashlib


def derive_seed(*parts: str | int) -> int:
    """A 64-bit seed from the parts, in order. Texts carry their length, so that no two lists of parts
    are the same text: `1` and `"1"` differ, as do `("a", "b")` and `("ab",)`.
    """
    text = "\x1f".join(f"i{part}" if isinstance(part, int) else f"s{len(part)}:{part}" for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
