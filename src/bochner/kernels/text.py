"""The text form of kernels, for the command line and files: a small grammar, never ``eval``.

What is read:

    sum     := product ("+" product)*
    product := factor ("*" factor)*
    factor  := number | postfix
    postfix := (name ["(" arguments ")"] | "(" sum ")") ("." method "(" … ")")*
    method  := "on" "(" columns ")" | "normalized" "(" ")" | "over" "(" sum ")"
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from bochner.errors import KernelError
from bochner.kernels import algebra
from bochner.kernels.base import DEEPEST, Kernel
from bochner.kernels.columns import selection
from bochner.kernels.nested import compose
from bochner.kernels.register import lookup
from bochner.kernels.stationary import Stationary

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<string>'(?:[^'\\\n]|\\[\\'\"nrtxuU])*'|\"(?:[^\"\\\n]|\\[\\'\"nrtxuU])*\")"
    r"|(?P<name>[^\W\d]\w*)|(?P<mark>[-+*(),.=:\[\]]))"
)
_LONGEST = 100_000


@dataclass
class _Token:
    kind: str
    text: str
    at: int


def _tokens(text: str) -> list[_Token]:
    found, at, end = [], 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if not match:
            at += len(text[at:]) - len(text[at:].lstrip())
            raise KernelError(f"cannot read {text[at]!r} at position {at + 1} of the kernel {_shown(text)}")
        kind = str(match.lastgroup)
        found.append(_Token(kind, match.group(kind), match.start(kind)))
        at = match.end()
    return [*found, _Token("end", "", len(text))]


def _shown(text: str) -> str:
    return repr(text if len(text) <= 200 else text[:200] + "…")


class _Parser:
    def __init__(self, text: str):
        if len(text) > _LONGEST:
            raise KernelError(f"the text of a kernel has at most {_LONGEST} characters, got {len(text)}")
        self.text, self.tokens, self.next, self.depth = text, _tokens(text), 0, 0

    def fail(self, wanted: str) -> KernelError:
        token = self.tokens[self.next]
        got = repr(token.text) if token.kind != "end" else "the end"
        return KernelError(f"expected {wanted} at position {token.at + 1} of the kernel {_shown(self.text)}, got {got}")

    def peek(self, mark: str) -> bool:
        token = self.tokens[self.next]
        return token.text == mark and token.kind in ("mark", "name")

    def accept(self, mark: str) -> bool:
        if self.peek(mark):
            self.next += 1
            return True
        return False

    def expect(self, mark: str) -> None:
        if not self.accept(mark):
            raise self.fail(repr(mark))

    def take(self, kind: str, wanted: str) -> str:
        token = self.tokens[self.next]
        if token.kind != kind:
            raise self.fail(wanted)
        self.next += 1
        return token.text

    # ---- the grammar
    def whole(self) -> Kernel:
        value = self.sum()
        if self.tokens[self.next].kind != "end":
            raise self.fail("'+', '*', '.' or the end")
        return _constant(value)

    def sum(self) -> Any:
        self.depth += 1
        if self.depth > DEEPEST:
            raise KernelError(f"the kernel is nested deeper than {DEEPEST} levels")
        parts = [self.product()]
        while self.accept("+"):
            parts.append(self.product())
        self.depth -= 1
        return parts[0] if len(parts) == 1 else algebra.Sum(tuple(map(algebra.as_kernel, parts)))

    def product(self) -> Any:
        parts = [self.factor()]
        while self.accept("*"):
            other = self.factor()
            if isinstance(parts[0], Kernel) and isinstance(other, Kernel):
                parts.append(other)
            elif isinstance(parts[0], Kernel) or isinstance(other, Kernel):
                parts = [algebra.multiply(_product(parts), other)]
            else:
                parts = [parts[0] * other]
        return _product(parts)

    def factor(self) -> Any:
        if self.tokens[self.next].kind == "number":
            return float(self.take("number", "a number"))
        if self.accept("("):
            value = self.sum()
            self.expect(")")
        else:
            value = self.call()
        while self.accept("."):
            value = self.method(value)
        return value

    def method(self, kernel: Any) -> Kernel:
        if not isinstance(kernel, Kernel):
            raise self.fail("a kernel before '.'")
        name = self.take("name", "on, over or normalized")
        if name not in ("on", "over", "normalized"):
            self.next -= 1
            raise self.fail("on, over or normalized")
        self.expect("(")
        result: Kernel
        if name == "on":
            result = algebra.On(kernel, self.columns())
        elif name == "over":
            if not isinstance(kernel, Stationary):
                raise KernelError(f"only a radial kernel can stand over another kernel, not {kernel}")
            result = kernel.over(_constant(self.sum()))
        else:
            result = kernel.normalized()
        self.expect(")")
        return result

    def columns(self) -> tuple[int | str, ...]:
        bracket = self.accept("[")
        found: list[str] = []
        while not self.peek(")") and not self.peek("]"):
            if self.tokens[self.next].kind == "string":
                found.append(self.string())
            else:
                start = self.end_of_range()
                found.append(f"{start}:{self.end_of_range()}" if self.accept(":") else start)
                if not found[-1]:
                    raise self.fail("a column: a position, a name or a range")
            if not self.accept(","):
                break
        if bracket:
            self.expect("]")
        return selection(found)

    def end_of_range(self) -> str:
        if self.tokens[self.next].kind == "name":
            return self.take("name", "a column")
        sign = "-" if self.accept("-") else ""
        if sign or self.tokens[self.next].kind == "number":
            digits = self.take("number", "a position")
            if not digits.isdigit():
                self.next -= 1
                raise self.fail("a position")
            return sign + digits
        return ""

    def string(self) -> str:
        token = self.take("string", "a string")
        try:
            return str(ast.literal_eval(token))  # undoes the escapes of repr
        except (SyntaxError, ValueError):
            self.next -= 1
            raise self.fail("a string without broken escapes") from None

    def call(self) -> Kernel:
        name = self.take("name", "a kernel")
        if name in ("compose", "Compose"):
            self.expect("(")
            outer = _constant(self.sum())
            self.expect(",")
            inner = _constant(self.sum())
            self.expect(")")
            return compose(outer, inner)
        cls = lookup(name)
        positional: list[Any] = []
        named: dict[str, Any] = {}
        if self.accept("("):
            while not self.peek(")"):
                ahead = self.tokens[self.next + 1] if self.next + 1 < len(self.tokens) else self.tokens[-1]
                if self.tokens[self.next].kind == "name" and ahead.text == "=":
                    key = self.take("name", "a parameter")
                    self.expect("=")
                    if key in named:
                        raise KernelError(f"{name}: {key} is given twice")
                    named[key] = self.value()
                elif named:
                    raise self.fail("name=value")
                else:
                    positional.append(self.value())
                if not self.accept(","):
                    break
            self.expect(")")
        try:
            return cls(*positional, **named)
        except TypeError as error:
            reason = str(error).replace("__init__() ", "").replace(f"{cls.__name__}.", "")
            raise KernelError(f"{name}: {reason}") from None

    def value(self) -> Any:
        if not self.accept("["):
            return self.scalar()
        items = []
        while not self.peek("]"):
            items.append(self.scalar())
            if not self.accept(","):
                break
        self.expect("]")
        return tuple(items)

    def scalar(self) -> Any:
        kind = self.tokens[self.next].kind
        if kind == "string":
            return self.string()
        if kind == "name":
            word = self.take("name", "a value")
            return {"True": True, "False": False, "None": None}.get(word, word)
        sign = -1 if self.accept("-") else 1
        return sign * _number(self.take("number", "a value"))


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() and len(text) < 16 else float(text)


def _product(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else algebra.Product(tuple(parts))


def _constant(value: Any) -> Kernel:
    return value if isinstance(value, Kernel) else algebra.as_kernel(value)


def parse(text: str) -> Kernel:
    """Read a kernel from its text form (or from its ``repr``).

    >>> parse("0.5*gaussian(gamma=0.1) + exp_chi2(gamma=1).on(f10:f300)")
    0.5*Gaussian(gamma=0.1) + ExpChi2(gamma=1.0).on('f10:f300')
    """
    if not isinstance(text, str):
        raise KernelError(f"the text of a kernel is a string, got {type(text).__name__}")
    return _Parser(text).whole()
