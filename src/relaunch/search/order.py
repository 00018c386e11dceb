"""How a cost grows with a size: the simplest order that explains it, and where it hits a limit."""

from __future__ import annotations

from enum import Enum
from math import exp, inf, isfinite, log, log2, sqrt

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Point = tuple[float, float]
    """A size, and what it cost."""


class Order(Enum):
    """How fast a cost grows, from slow to fast."""

    CONSTANT = "constant"
    LOG_N = "log n"
    N = "n"
    N_LOG_N = "n log n"
    N_SQUARED = "n^2"
    N_CUBED = "n^3"
    TWO_TO_N = "2^n"
    NOT_ENOUGH = "not enough"


_GROWTH: dict[Order, Callable[[float], float]] = {
    Order.CONSTANT: lambda _: 0.0,
    Order.LOG_N: lambda n: log2(n) if n > 0 else 0.0,
    Order.N: lambda n: n,
    Order.N_LOG_N: lambda n: n * log2(n) if n > 0 else 0.0,
    Order.N_SQUARED: lambda n: n**2,
    Order.N_CUBED: lambda n: n**3,
    Order.TWO_TO_N: lambda n: 2.0**n,
}
_LEAST_SIZES = 4
_LEAST_RANGE = 4.0
_MOST_DOUBLINGS = 1000
"""Beyond this, 2^n is no number."""
_LEAST_ERROR = 1e-4
"""Relative errors below this say nothing."""
_SURE = 10.0
"""By so much must the next best order be worse: very strong evidence, by Kass and Raftery."""
_PRICE_OF_GROWTH = 6.0
"""An order that grows must be better than a constant by this: there are six, and one would do."""
_GROWS = 1.1
"""A cost that does not grow by more than this over all sizes may be called constant."""
_BAD = 0.25
"""A relative error above which no order explains anything."""
_OUTLIER = 5.0
"""One point is left out if the others then fit so many times better."""
_LEAST_BESIDE_OUTLIER = 5
_STRANGE = 12
"""So many points, those that fit worst, may be the one."""


class Curve(Record):
    """One order with its coefficients: `offset + factor * growth(n)`."""

    order: Order
    offset: float
    """What it costs to start up."""
    factor: float
    error: float
    """The typical relative error."""
    score: float
    """Lower is better; the price of each coefficient is included (BIC)."""

    def cost(self, size: float) -> float:
        """Return the cost of a size."""
        try:
            return self.offset + self.factor * _GROWTH[self.order](size)
        except OverflowError:
            return inf

    @property
    def formula(self) -> str:
        """Write it down."""
        if not self.factor:
            return f"{self.offset:.3g}"
        term = f"{self.factor:.3g} {self.order.value}"
        return f"{self.offset:.3g} + {term}" if self.offset else term


class Fit(Record):
    """The order of a cost; `NOT_ENOUGH` where the points cannot tell any."""

    order: Order
    curve: Curve | None = None
    is_sure: bool = False
    """No other order explains the points nearly as well."""
    rivals: tuple[Curve, ...] = ()
    """Orders that explain the points nearly as well, the best first."""
    outlier: tuple[float, float] | None = None
    """A point that was left out because all the others agree without it."""
    r2: float = 0.0
    """The share of what varies, relative to the cost, that the order explains."""

    @property
    def formula(self) -> str:
        """Write the order down with its coefficients."""
        return self.curve.formula if self.curve is not None else ""


def fit(points: Sequence[Point]) -> Fit:
    """Find the simplest order that explains the points; of a size tried again, the median counts.

    It needs four sizes, the largest at least four times the smallest, and costs above 0. One point
    is left out if there are six sizes and the others agree much better without it.
    """
    points = _medians(points)
    if len(points) < _LEAST_SIZES or points[-1][0] < _LEAST_RANGE * points[0][0]:
        return Fit(order=Order.NOT_ENOUGH)
    curves = _curves(points)
    outlier = _outlier(points, curves[0])
    if outlier is not None:
        points = [point for point in points if point != outlier]
        curves = _curves(points)
    best = curves[0]
    rivals = tuple(curve for curve in curves[1:] if _is_rival(points, best, curve))
    return Fit(
        order=best.order,
        curve=best,
        is_sure=not rivals and best.error < _BAD and _hangs_not_on_one(points, best),
        rivals=rivals,
        outlier=outlier,
        r2=_explained(points, best),
    )


def _is_rival(points: Sequence[Point], best: Curve, curve: Curve) -> bool:
    if curve.score - best.score >= _SURE:
        return False
    grows = curve.cost(points[-1][0]) > _GROWS * curve.cost(points[0][0])
    return grows or best.order is not Order.CONSTANT


def _hangs_not_on_one(points: Sequence[Point], best: Curve) -> bool:
    """Tell whether the order would be the same without the largest size."""
    return len(points) > _LEAST_SIZES and _curves(points[:-1])[0].order is best.order


def _medians(points: Sequence[Point]) -> list[Point]:
    costs: dict[float, list[float]] = {}
    for size, cost in points:
        if size > 0 and cost > 0 and isfinite(size) and isfinite(cost):
            costs.setdefault(size, []).append(cost)
    return [(size, _median(several)) for size, several in sorted(costs.items())]


def _median(values: Sequence[float]) -> float:
    ranked, half = sorted(values), len(values) // 2
    return ranked[half] if len(values) % 2 else (ranked[half - 1] + ranked[half]) / 2


def _curves(points: Sequence[Point]) -> list[Curve]:
    """Fit every order, the best first; of two that are alike, the one that grows slower."""
    found = [_curve(points, order) for order in _possible(points)]
    growing = [curve for curve in found if curve.factor or curve.order is Order.CONSTANT]
    return sorted(growing, key=lambda curve: curve.score)


def _possible(points: Sequence[Point]) -> list[Order]:
    found = [Order.CONSTANT, Order.N, Order.N_SQUARED, Order.N_CUBED]
    if points[0][0] >= 1:
        found += [Order.LOG_N, Order.N_LOG_N]
    if points[-1][0] <= _MOST_DOUBLINGS:
        found.append(Order.TWO_TO_N)
    return sorted(found, key=list(_GROWTH).index)


def _curve(points: Sequence[Point], order: Order) -> Curve:
    growth = [_GROWTH[order](size) for size, _ in points]
    offset, factor = _least_squares(growth, [cost for _, cost in points])
    squares = sum(
        (1 - (offset + factor * grown) / cost) ** 2
        for grown, (_, cost) in zip(growth, points, strict=True)
    )
    count, coefficients = len(points), (offset > 0) + (factor > 0)
    floored = max(squares / count, _LEAST_ERROR**2)
    return Curve(
        order=order,
        offset=offset,
        factor=factor,
        error=sqrt(squares / max(1, count - coefficients)),
        score=count * log(floored)
        + coefficients * log(count)
        + (_PRICE_OF_GROWTH if factor else 0),
    )


def _least_squares(growth: Sequence[float], costs: Sequence[float]) -> tuple[float, float]:
    """Return offset and factor, neither below 0, with the least squares of relative errors."""
    top = max(growth)
    if top <= 0:
        return _alone([1 / cost for cost in costs]), 0.0
    ones = [1 / cost for cost in costs]
    grown = [one / top / cost for one, cost in zip(growth, costs, strict=True)]
    aa, ab, bb = _dot(ones, ones), _dot(ones, grown), _dot(grown, grown)
    determinant = aa * bb - ab * ab
    offset = (
        (sum(ones) * bb - sum(grown) * ab) / determinant if determinant > 1e-12 * aa * bb else 0
    )
    factor = (sum(grown) - offset * ab) / bb
    if factor <= 0:
        return _alone(ones), 0.0
    return (offset, factor / top) if offset > 0 else (0.0, _alone(grown) / top)


def _alone(column: Sequence[float]) -> float:
    """Return the one coefficient that brings a column nearest to all ones."""
    return sum(column) / _dot(column, column)


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def _outlier(points: Sequence[Point], whole: Curve) -> Point | None:
    """Return the point without which all the others agree much better, if there is one."""
    if len(points) <= _LEAST_BESIDE_OUTLIER:
        return None
    strange = sorted(points, key=lambda point: -_off(whole, point))[:_STRANGE]
    without = {point: _curves([one for one in points if one != point])[0] for point in strange}
    point, best = min(without.items(), key=lambda item: item[1].error)
    is_off = _off(best, point) > _OUTLIER * max(best.error, _LEAST_ERROR)
    return point if is_off and whole.error > _OUTLIER / 2 * best.error else None


def _off(curve: Curve, point: Point) -> float:
    return abs(1 - curve.cost(point[0]) / point[1])


def _explained(points: Sequence[Point], curve: Curve) -> float:
    level = exp(sum(log(cost) for _, cost in points) / len(points))
    around = sum((1 - level / cost) ** 2 for _, cost in points)
    left = sum(_off(curve, point) ** 2 for point in points)
    return max(0.0, 1 - left / around) if around else 1.0


# --- where it hits a limit


def reaches(fit: Fit, limit: float) -> float | None:
    """Return the size whose cost is the limit; None where it is never reached."""
    return None if fit.curve is None else _reached(fit.curve, limit)


def reach_interval(fit: Fit, limit: float) -> tuple[float, float] | None:
    """Return the least and the greatest size that may hit the limit, by all orders not excluded."""
    if fit.curve is None:
        return None
    sizes: list[float] = []
    for curve in (fit.curve, *fit.rivals):
        slack = 1 + 2 * curve.error
        sizes += [_reached(curve, limit / slack) or inf, _reached(curve, limit * slack) or inf]
    return (min(sizes), max(sizes)) if min(sizes) < inf else None


def _reached(curve: Curve, limit: float) -> float | None:
    if not curve.factor:
        return None
    low, high = 0.0, 1.0
    while curve.cost(high) < limit:
        low, high = high, high * 2
        if high == inf:
            return None
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if curve.cost(middle) < limit else (low, middle)
    return high
