"""The text form of kernels, for the command line and files: a small grammar, never ``eval``.

    sum     := product ("+" product)*
    product := factor ("*" factor)*
    factor  := number | postfix
    postfix := (name ["(" arguments ")"] | "(" sum ")") ("." method "(" … ")")*
    method  := "on" "(" columns ")" | "normalized" "(" ")" | "over" "(" sum ")"
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from bochner.errors import KernelError
from bochner.kernels import algebra
from bochner.kernels.base import Kernel
from bochner.kernels.register import lookup
from bochner.kernels.stationary import Stationary

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)"
    r"|(?P<string>'[^']*'|\"[^\"]*\")|(?P<name>[^\W\d]\w*)|(?P<mark>[-+*(),.=:\[\]]))"
)
_DEEPEST = 50
_LONGEST = 100_000


@dataclass
class _Token:
    kind: str
    text: str
    at: int


def _tokens(text: str) -> list[_Token]:
    found, at = [], 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if not match:
            raise KernelError(f"cannot read {text[at:].strip()[0]!r} at position {at + 1} of the kernel {text!r}")
        kind = str(match.lastgroup)
        found.append(_Token(kind, match.group(kind), match.start(kind)))
        at = match.end()
    return [*found, _Token("end", "", len(text))]


class _Parser:
    def __init__(self, text: str):
        if len(text) > _LONGEST:
            raise KernelError(f"the text of a kernel has at most {_LONGEST} characters, got {len(text)}")
        self.text, self.tokens, self.next, self.depth = text, _tokens(text), 0, 0

    def fail(self, wanted: str) -> KernelError:
        token = self.tokens[self.next]
        got = repr(token.text) if token.kind != "end" else "the end"
        return KernelError(f"expected {wanted} at position {token.at + 1} of the kernel {self.text!r}, got {got}")

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
        if self.depth > _DEEPEST:
            raise KernelError(f"the kernel is nested deeper than {_DEEPEST} levels")
        value = self.product()
        while self.accept("+"):
            value = algebra.add(value, self.product())
        self.depth -= 1
        return value

    def product(self) -> Any:
        value = self.factor()
        while self.accept("*"):
            other = self.factor()
            numbers = not isinstance(value, Kernel) and not isinstance(other, Kernel)
            value = value * other if numbers else algebra.multiply(value, other)
        return value

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
        if name == "on":
            result = kernel.on(self.columns())
        elif name == "over":
            if not isinstance(kernel, Stationary):
                raise KernelError(f"only a radial kernel can stand over another kernel, not {kernel}")
            result = kernel.over(_constant(self.sum()))
        else:
            result = kernel.normalized()
        self.expect(")")
        return result

    def columns(self) -> list[int | str]:
        bracket = self.accept("[")
        found: list[int | str] = []
        while not self.peek(")") and not self.peek("]"):
            token = self.tokens[self.next]
            if token.kind == "string":
                self.next += 1
                found.extend(algebra.selection([token.text[1:-1]]))
            else:
                start = self.end_of_range()
                item = f"{start}:{self.end_of_range()}" if self.accept(":") else start
                if item == "":
                    raise self.fail("a column: a position, a name or a range")
                found.extend(algebra.selection([item]))
            if not self.accept(","):
                break
        if bracket:
            self.expect("]")
        return found

    def end_of_range(self) -> str:
        sign = "-" if self.accept("-") else ""
        token = self.tokens[self.next]
        if token.kind in ("name", "number"):
            self.next += 1
            return sign + token.text
        return sign

    def call(self) -> Kernel:
        name = self.take("name", "a kernel")
        if name in ("compose", "Compose"):
            self.expect("(")
            outer = _constant(self.sum())
            self.expect(",")
            inner = _constant(self.sum())
            self.expect(")")
            return algebra.compose(outer, inner)
        cls = lookup(name)
        positional: list[Any] = []
        named: dict[str, Any] = {}
        if self.accept("("):
            while not self.peek(")"):
                ahead = self.tokens[self.next + 1] if self.next + 1 < len(self.tokens) else self.tokens[-1]
                if self.tokens[self.next].kind == "name" and ahead.text == "=":
                    key = self.take("name", "a parameter")
                    self.expect("=")
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
        token = self.tokens[self.next]
        if self.accept("["):
            items = []
            while not self.peek("]"):
                items.append(self.value())
                if not self.accept(","):
                    break
            self.expect("]")
            return tuple(items)
        if self.accept("-"):
            return -_number(self.take("number", "a number"))
        self.next += 1
        if token.kind == "number":
            return _number(token.text)
        if token.kind == "string":
            return token.text[1:-1]
        if token.kind == "name":
            return {"True": True, "False": False, "None": None}.get(token.text, token.text)
        self.next -= 1
        raise self.fail("a value")


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)


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
