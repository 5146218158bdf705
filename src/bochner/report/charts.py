"""Charts as inline SVG: they take their colours from the page, and say in words what they show."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 520, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 16, 14, 46


@dataclass(frozen=True)
class Line:
    """Points by ascending x, with a name for the legend; a band lies ``spread`` to either side."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    spread: Sequence[float] | None = None
    dots: bool = True


@dataclass(frozen=True)
class _Axis:
    low: float
    high: float
    log: bool
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        low, high, at = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (self.stop - self.start) * (at - low) / ((high - low) or 1.0)

    def ticks(self) -> list[float]:
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            decades = max(1, math.ceil((last - first) / 7))
            found = [10.0**e for e in range(first, last + 1, decades)]
        else:
            step = _nice((self.high - self.low) / 6 or 1.0)
            found = [step * i for i in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]
        return [tick for tick in found if self.low * (1 - 1e-9) <= tick <= self.high * (1 + 1e-9) or not self.log]


def _nice(step: float) -> float:
    base = 10.0 ** math.floor(math.log10(step))
    return next(base * factor for factor in (1, 2, 5, 10) if base * factor >= step * (1 - 1e-9))


def _axis(values: list[float], log: bool, start: float, stop: float, from_zero: bool = False) -> _Axis:
    low, high = min(values), max(values)
    if log:
        pad = (high / low) ** 0.03 if high > low else 1.5
        return _Axis(low / pad, high * pad, True, start, stop)
    pad = 0.05 * (high - low) or 0.5 * abs(high) or 1.0
    return _Axis(0.0 if from_zero and low >= 0 else low - pad, high + pad, False, start, stop)


def lines(
    title: str,
    x_name: str,
    y_name: str,
    series: Sequence[Line],
    *,
    log_x: bool = False,
    log_y: bool = False,
    mark: tuple[float, str] | None = None,
    diagonal: bool = False,
    words: str = "",
) -> str:
    """Lines with dots; ``mark`` is a vertical line at an x, with what it is; ``words`` say what the chart shows."""
    series = [_told(line, log_x, log_y) for line in series]
    series = [line for line in series if line.x]
    if not series:
        return ""
    xs = [x for line in series for x in line.x] + ([mark[0]] if mark and (mark[0] > 0 or not log_x) else [])
    ys = [y for line in series for y in line.y]
    ax = _axis(xs, log_x, _LEFT, WIDTH - _RIGHT)
    ay = _axis(ys, log_y, HEIGHT - _BOTTOM, _TOP)
    parts = [*_frame(ax, ay, x_name, y_name)]
    if diagonal:
        low, high = max(ax.low, ay.low), min(ax.high, ay.high)
        parts.append(f'<path class="rule" d="M{ax(low):.1f},{ay(low):.1f}L{ax(high):.1f},{ay(high):.1f}"/>')
    if mark is not None and ax.low <= mark[0] <= ax.high:
        x = ax(mark[0])
        anchor = "end" if x > WIDTH / 2 else "start"
        shift = -5 if anchor == "end" else 5
        parts.append(f'<path class="rule" d="M{x:.1f},{_TOP}V{HEIGHT - _BOTTOM}"/>')
        parts.append(f'<text x="{x + shift:.1f}" y="{_TOP + 10}" text-anchor="{anchor}">{escape(mark[1])}</text>')
    for i, line in enumerate(series):
        points = [(ax(x), ay(y)) for x, y in zip(line.x, line.y, strict=True)]
        if line.spread is not None:
            parts.append(_band(line, ax, ay, i))
        path = "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<path class="line s{i % 6}" d="{path}"/>')
        if line.dots:
            parts += [f'<circle class="dot s{i % 6}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in points]
    legend = _legend([line.name for line in series]) if len(series) > 1 else ""
    return _figure(title, words, parts, HEIGHT) + legend


def _told(line: Line, log_x: bool, log_y: bool) -> Line:
    """Without points that a chart cannot show."""

    def right(x: float, y: float) -> bool:
        return math.isfinite(x) and math.isfinite(y) and (x > 0 or not log_x) and (y > 0 or not log_y)

    keep = [i for i, (x, y) in enumerate(zip(line.x, line.y, strict=True)) if right(x, y)]
    spread = None if line.spread is None else [line.spread[i] for i in keep]
    return Line(line.name, [line.x[i] for i in keep], [line.y[i] for i in keep], spread, line.dots)


def _band(line: Line, ax: _Axis, ay: _Axis, i: int) -> str:
    assert line.spread is not None
    floor = ay.low
    upper = [(x, min(y + s, ay.high)) for x, y, s in zip(line.x, line.y, line.spread, strict=True)]
    lower = [(x, max(y - s, floor)) for x, y, s in zip(line.x, line.y, line.spread, strict=True)]
    path = "M" + "L".join(f"{ax(x):.1f},{ay(y):.1f}" for x, y in [*upper, *reversed(lower)]) + "Z"
    return f'<path class="band s{i % 6}" d="{path}"/>'


def bars(title: str, names: Sequence[str], values: Sequence[float], form: Callable[[float], str], words: str) -> str:
    """Horizontal bars, each with its name above it and its value at its end."""
    if not names:
        return ""
    top = max(max(values), 1e-300)
    height = 34 * len(names) + 8
    parts = []
    for i, (name, value) in enumerate(zip(names, values, strict=True)):
        y, length = 34 * i, max(1.0, (WIDTH - 110) * value / top)
        shown = name if len(name) < 74 else name[:71] + "…"
        parts.append(f'<text x="0" y="{y + 12}">{escape(shown)}</text>')
        parts.append(f'<rect class="bar" x="0" y="{y + 17}" width="{length:.1f}" height="11" rx="2"/>')
        parts.append(f'<text class="value" x="{length + 6:.1f}" y="{y + 27}">{escape(form(value))}</text>')
    return _figure(title, words, parts, height)


def columns(title: str, x_name: str, y_name: str, edges: Sequence[float], counts: Sequence[float], words: str) -> str:
    """A histogram."""
    if not counts or max(counts) <= 0:
        return ""
    ax = _axis(list(edges), False, _LEFT, WIDTH - _RIGHT)
    ay = _axis([0.0, *counts], False, HEIGHT - _BOTTOM, _TOP, from_zero=True)
    parts = [*_frame(ax, ay, x_name, y_name)]
    for left, right, count in zip(edges[:-1], edges[1:], counts, strict=True):
        x, y = ax(left), ay(count)
        parts.append(
            f'<rect class="bar" x="{x:.1f}" y="{y:.1f}" width="{max(0.5, ax(right) - x - 1):.1f}" '
            f'height="{max(0.0, ay(0.0) - y):.1f}"/>'
        )
    return _figure(title, words, parts, HEIGHT)


def grid(title: str, names: Sequence[str], shares: Sequence[Sequence[float]], words: str) -> str:
    """A square of shares between 0 and 1, rows by columns, darker where they are larger."""
    k = len(names)
    if k == 0:
        return ""
    left, side = 110, min(44.0, (WIDTH - 120) / k)
    parts = []
    for i, row in enumerate(shares):
        y = 22 + side * i
        parts.append(
            f'<text x="{left - 6}" y="{y + side / 2 + 4:.1f}" text-anchor="end">{escape(names[i][:14])}</text>'
        )
        for j, share in enumerate(row):
            x = left + side * j
            parts.append(
                f'<rect class="cell" x="{x:.1f}" y="{y:.1f}" width="{side - 1:.1f}" height="{side - 1:.1f}" '
                f'style="fill-opacity:{share:.3f}"/>'
            )
            if side >= 26 and share >= 0.005:
                ink = "light" if share > 0.55 else ""
                middle = f'x="{x + side / 2:.1f}" y="{y + side / 2 + 4:.1f}"'
                parts.append(f'<text class="{ink}" {middle} text-anchor="middle">{100 * share:.0f}</text>')
    for j in range(k):
        x = left + side * (j + 0.5)
        if side >= 26:
            parts.append(f'<text x="{x:.1f}" y="14" text-anchor="middle">{escape(names[j][:6])}</text>')
    return _figure(title, words, parts, 26 + side * k)


def _frame(ax: _Axis, ay: _Axis, x_name: str, y_name: str) -> list[str]:
    parts = []
    for tick in ay.ticks():
        y = ay(tick)
        if _TOP - 1 <= y <= HEIGHT - _BOTTOM + 1:
            parts.append(f'<path class="grid" d="M{_LEFT},{y:.1f}H{WIDTH - _RIGHT}"/>')
            parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_shown(tick)}</text>')
    for tick in ax.ticks():
        x = ax(tick)
        if _LEFT - 1 <= x <= WIDTH - _RIGHT + 1:
            parts.append(f'<path class="grid" d="M{x:.1f},{_TOP}V{HEIGHT - _BOTTOM}"/>')
            parts.append(f'<text x="{x:.1f}" y="{HEIGHT - _BOTTOM + 16}" text-anchor="middle">{_shown(tick)}</text>')
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_name)}</text>')
    turned = f'transform="translate(13,{(_TOP + HEIGHT - _BOTTOM) / 2}) rotate(-90)"'
    parts.append(f'<text {turned} text-anchor="middle">{escape(y_name)}</text>')
    return parts


def _shown(value: float) -> str:
    if value == 0.0:
        return "0"
    size = abs(value)
    if 1e-3 <= size < 1e5:
        return f"{value:,.4g}"
    mantissa, exponent = f"{value:.0e}".split("e")
    digits = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{digits}" if mantissa == "1" else f"{mantissa}·10{digits}"


def _legend(names: list[str]) -> str:
    items = "".join(f'<span><i class="s{i % 6}"></i>{escape(name)}</span>' for i, name in enumerate(names))
    return f'<p class="legend">{items}</p>'


def _figure(title: str, words: str, parts: list[str], height: float) -> str:
    told = escape(f"{title}. {words}".strip())
    return (
        f'<svg role="img" aria-label="{told}" viewBox="0 0 {WIDTH} {height:.0f}"><title>{told}</title>'
        + "".join(parts)
        + "</svg>"
    )
