"""The card as a PNG of 1200 by 630 pixels, the size that previews of links are cut to.

Drawn here because those who show previews take no SVG. The typeface comes from a package (Source Serif, SIL OFL); a
letter that it lacks is left out rather than shown as a box.
"""

import unicodedata
from functools import lru_cache
from importlib.resources import files
from io import BytesIO

from PIL import Image, ImageDraw, ImageFont

from negotiation_site.sharing.cards import Card, Part

WIDTH, HEIGHT = 1200, 630
MARGIN = 72
PAPER, INK, QUIET, RULE = "#faf8f4", "#1d1b18", "#4f4a42", "#e2dccf"
COLOURS = {"seller": "#9a4a00", "buyer": "#0a5f73", "rest": "#8f8778"}
"""The page's own: ochre sells, teal buys."""
FACES = files("font_source_serif_pro") / "files"


@lru_cache(maxsize=16)
def face(size: int, weight: str = "Regular") -> ImageFont.FreeTypeFont:
    """The typeface in one size."""
    return ImageFont.truetype(str(FACES / f"SourceSerifPro-{weight}.ttf"), size)


@lru_cache(maxsize=1)
def _missing() -> bytes:
    return bytes(face(32).getmask("\uffff"))


@lru_cache(maxsize=4096)
def _has(letter: str) -> bool:
    return letter.isspace() or bytes(face(32).getmask(letter)) != _missing()


def drawable(text: str) -> str:
    """`text` in letters that the typeface has: accents go before letters do."""
    found = []
    for letter in text.replace("\u00a0", " "):
        plain = letter if _has(letter) else unicodedata.normalize("NFKD", letter)[0]
        found.append(plain if _has(plain) else "")
    return " ".join("".join(found).split())


def lines_of(text: str, font: ImageFont.FreeTypeFont, *, width: int, most: int) -> list[str]:
    """Words on lines of at most `width` pixels; what does not fit on `most` lines ends in an ellipsis."""
    lines: list[str] = []
    for word in drawable(text).split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and font.getlength(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    shown = [_cut(line, font, width) for line in lines[:most]]
    if len(lines) > most:
        shown[-1] = _cut(f"{shown[-1]} …", font, width)
    return shown


def _cut(line: str, font: ImageFont.FreeTypeFont, width: int) -> str:
    if font.getlength(line) <= width:
        return line
    kept = line.removesuffix(" …")
    while kept and font.getlength(f"{kept}…") > width:
        kept = kept[:-1]
    return f"{kept.rstrip()}…"


@lru_cache(maxsize=64)
def png(card: Card) -> bytes:
    """The picture."""
    image = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    draw = ImageDraw.Draw(image)
    _brand(draw)
    market = _cut(drawable(card.market), face(30), WIDTH - 2 * MARGIN - 260)
    draw.text((WIDTH - MARGIN, 62), market, font=face(30), fill=QUIET, anchor="ra")
    y = 150
    for line in lines_of(card.headline, face(60), width=WIDTH - 2 * MARGIN, most=3):
        draw.text((MARGIN, y), line, font=face(60), fill=INK)
        y += 72
    draw.text((MARGIN, y + 16), _cut(drawable(card.thing), face(32), WIDTH - 2 * MARGIN), font=face(32), fill=QUIET)
    if card.parts:
        _bar(draw, card.parts, top=456)
    foot = " · ".join(filter(None, (card.who, card.against)))
    draw.text(
        (MARGIN, HEIGHT - 56),
        _cut(drawable(foot), face(28), WIDTH - 2 * MARGIN),
        font=face(28),
        fill=QUIET,
        anchor="ls",
    )
    held = BytesIO()
    image.save(held, "PNG", optimize=True)
    return held.getvalue()


def _brand(draw: ImageDraw.ImageDraw) -> None:
    """The mark of the site: two pennants on a line of prices, and what they agree on."""
    x, y = MARGIN, 92
    draw.line((x, y, x + 76, y), fill=INK, width=3)
    draw.polygon(
        [
            (x + 15, y),
            (x + 15, y - 22),
            (x + 29, y - 22),
            (x + 25, y - 16),
            (x + 29, y - 10),
            (x + 18, y - 10),
            (x + 18, y),
        ],
        fill=COLOURS["seller"],
    )
    draw.polygon(
        [
            (x + 61, y),
            (x + 61, y - 22),
            (x + 47, y - 22),
            (x + 51, y - 16),
            (x + 47, y - 10),
            (x + 58, y - 10),
            (x + 58, y),
        ],
        fill=COLOURS["buyer"],
    )
    draw.ellipse((x + 31, y - 7, x + 45, y + 7), fill=INK, outline=PAPER, width=2)
    draw.text((x + 94, y + 8), "Parley", font=face(40), fill=INK, anchor="ls")


def _bar(draw: ImageDraw.ImageDraw, parts: tuple[Part, ...], *, top: int) -> None:
    """Who took what, in proportion. Words stand inside a piece that holds them."""
    width, left, height = WIDTH - 2 * MARGIN, MARGIN, 64
    for place, part in enumerate(parts):
        right = WIDTH - MARGIN if place == len(parts) - 1 else left + round(part.fraction * width)
        if right > left:
            draw.rectangle(
                (left, top, right - (0 if place == len(parts) - 1 else 3), top + height), fill=COLOURS[part.role]
            )
            words = drawable(f"{part.label} {part.text}")
            if face(30, "Semibold").getlength(words) + 32 <= right - left:
                draw.text((left + 18, top + height / 2), words, font=face(30, "Semibold"), fill="#ffffff", anchor="lm")
        left = right
