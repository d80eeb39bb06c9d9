"""Addresses and numbers of people in what they typed, taken out of text that leaves the server.

Here: finding e-mail addresses, links and telephone numbers, and writing a mark in their place. Pure.

Contract: what looks like one of the three is masked, a price is not: an amount has a currency sign,
or at most eight digits in groups of three. When in doubt between a long number and a telephone, it is
masked. A word may be lost by mistake; names and street addresses are not looked for.
"""

import re

EMAIL, LINK, PHONE = "[email]", "[link]", "[phone]"
REMOVED = "[removed by the staff]"
"""What stands where the staff took words away, in every table; in English in every language, as part of the record."""

_EMAIL = re.compile(
    r"[\w.+%-]+\s?(?:[@＠]|[\[(]\s?at\s?[\])])\s?[\w-]+(?:\s?(?:\.|[\[(]\s?dot\s?[\])])\s?[\w-]+)+",
    re.IGNORECASE,
)
_LINK = re.compile(
    r"(?:[a-z][a-z0-9+.-]{1,20}://|www\.)[^\s<>\"']+"
    r"|\b(?:[a-z0-9-]+\.)+(?:com|net|org|info|biz|io|me|co|app|dev|edu|gov|eu|uk|de|fr|es|it|nl|be|ch|at|pl|se|no|dk|fi|"
    r"pt|ru|ua|cn|jp|kr|in|br|mx|ca|au|nz|us|tv|gg|ly|to|link|shop|store|online|site|xyz)\b(?:[/?#][^\s<>\"']*)?",
    re.IGNORECASE,
)
_DOTTED = re.compile(r"\.\S")
_NUMBER = re.compile(r"(?<![\w$€£¥.,])\+?\(?\d[\d\s().\-/\u2010-\u2015]{5,}\d(?![\w])")
_AMOUNT = re.compile(r"\d{1,3}(?:[.,\s]\d{3})+(?:[.,]\d{1,2})?|\d+\.\d{1,2}")
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}")
_SIGN = re.compile(r"\s?(?:[$€£¥]|USD|EUR|GBP|dollars?|euros?)", re.IGNORECASE)
FEWEST_DIGITS = 7


def mask(text: str) -> str:
    """`text` with a mark in place of every e-mail address, link and telephone number, and of halves of characters."""
    text = whole(text)
    if not text:
        return text
    # Each search is spared where a character that it needs is missing: most words are of no such kind.
    if any(sign in text for sign in ("@", "＠", "(", "[")):
        text = _EMAIL.sub(EMAIL, text)
    if "://" in text or _DOTTED.search(text):
        text = _LINK.sub(LINK, text)
    return _NUMBER.sub(_number, text) if sum(map(str.isdigit, text)) >= FEWEST_DIGITS else text


def whole(text: str) -> str:
    """`text` as UTF-8 can hold it: a question mark for half a character, nothing for a NUL or for words that the staff
    took away."""
    if text == REMOVED:
        return ""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")


def _number(match: re.Match[str]) -> str:
    found = match[0]
    digits = sum(map(str.isdigit, found))
    if found.startswith("+") and digits >= FEWEST_DIGITS:
        return PHONE
    if digits < FEWEST_DIGITS or _DATE.fullmatch(found) or _SIGN.match(match.string, match.end()):
        return found
    if digits <= 8 and (_AMOUNT.fullmatch(found) or (found.isdigit() and found[0] != "0")):
        return found
    return PHONE
