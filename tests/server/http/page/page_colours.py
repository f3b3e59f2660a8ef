"""Contrast as WCAG 2.2 defines it, of the colours the page's style sheet declares."""

from pathlib import Path

import tinycss2
from tinycss2.ast import Declaration, FunctionBlock, QualifiedRule
from tinycss2.color4 import Color, parse_color

Palette = dict[str, str]


def palettes(sheet: Path) -> tuple[Palette, Palette]:
    """Colours by name, for light and for dark, of all `--name: light-dark(one, other)` in a style sheet."""
    light: Palette = {}
    dark: Palette = {}
    rules = tinycss2.parse_stylesheet(sheet.read_text(encoding="utf-8"), skip_comments=True, skip_whitespace=True)
    for rule in rules:
        assert isinstance(rule, QualifiedRule), rule
        for declaration in tinycss2.parse_blocks_contents(rule.content, skip_comments=True, skip_whitespace=True):
            assert isinstance(declaration, Declaration), declaration
            if declaration.name.startswith("--"):
                light[declaration.name], dark[declaration.name] = _pair(declaration)
    return light, dark


def _pair(declaration: Declaration) -> tuple[str, str]:
    [function] = [token for token in declaration.value if isinstance(token, FunctionBlock)]
    assert function.name == "light-dark", f"{declaration.name} has one colour for light and dark"
    commas = [place for place, token in enumerate(function.arguments) if token == ","]
    [comma] = commas
    one, other = function.arguments[:comma], function.arguments[comma + 1 :]
    return tinycss2.serialize(one).strip(), tinycss2.serialize(other).strip()


def contrast(one: str, other: str) -> float:
    """From 1 to 21: https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(written: str) -> float:
    colour = parse_color(written)
    assert isinstance(colour, Color), written
    assert colour.alpha == 1, f"{written} shows what is behind it"
    red, green, blue = (_linear(channel) for channel in colour.to("srgb").coordinates)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)
