"""Polynomials with integer coefficients over numbered unknowns: the form in which index arithmetic is compared, divided and rewritten."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

#: The numbers of the unknowns of a product, ascending, each as often as it is a factor.
Monomial = tuple[int, ...]
_ONE: Monomial = ()


@dataclass(frozen=True)
class Polynomial:
    """A sum of terms, each (monomial, coefficient other than 0), ordered by monomial. Equal polynomials are equal objects."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @staticmethod
    def of(terms: Iterable[tuple[Monomial, int]]) -> Polynomial:
        """Return the sum of terms in any order."""
        total: dict[Monomial, int] = {}
        for monomial, coefficient in terms:
            total[monomial] = total.get(monomial, 0) + coefficient
        return Polynomial(tuple(sorted((m, c) for m, c in total.items() if c)))

    @staticmethod
    def constant(value: int) -> Polynomial:
        """Return a number as a polynomial."""
        return Polynomial(((_ONE, value),)) if value else ZERO

    @staticmethod
    def unknown(number: int) -> Polynomial:
        """Return one unknown."""
        return Polynomial((((number,), 1),))

    def __add__(self, other: Polynomial) -> Polynomial:
        return Polynomial.of((*self.terms, *other.terms))

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + other.scaled(-1)

    def __mul__(self, other: Polynomial) -> Polynomial:
        return Polynomial.of((tuple(sorted((*m, *n))), c * d) for m, c in self.terms for n, d in other.terms)

    def scaled(self, factor: int) -> Polynomial:
        """Return the product with a number."""
        return Polynomial(tuple((m, factor * c) for m, c in self.terms)) if factor else ZERO

    def divided(self, divisor: int) -> Polynomial | None:
        """Return the quotient by a number other than 0 if it divides every coefficient, or None."""
        if any(c % divisor for _, c in self.terms):
            return None
        return Polynomial(tuple((m, c // divisor) for m, c in self.terms))

    @cached_property
    def number(self) -> int | None:
        """The value if it is a constant, or None."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and self.terms[0][0] == _ONE else None

    def split(self, chosen: Callable[[Monomial], bool]) -> tuple[Polynomial, Polynomial]:
        """Return the terms whose monomial is chosen, and the others."""
        yes = tuple(t for t in self.terms if chosen(t[0]))
        no = tuple(t for t in self.terms if not chosen(t[0]))
        return Polynomial(yes), Polynomial(no)

    def unknowns(self) -> set[int]:
        """Return the numbers of the unknowns that occur."""
        return {number for monomial, _ in self.terms for number in monomial}


ZERO = Polynomial()
ONE = Polynomial.constant(1)


def quotient(term: tuple[Monomial, int], divisor: tuple[Monomial, int]) -> tuple[Monomial, int] | None:
    """Return the term that gives `term` when multiplied by `divisor`, or None if there is none."""
    monomial, coefficient = list(term[0]), term[1]
    for number in divisor[0]:
        if number not in monomial:
            return None
        monomial.remove(number)
    return (tuple(monomial), coefficient // divisor[1]) if coefficient % divisor[1] == 0 else None
