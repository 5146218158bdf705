"""Kernels as JSON: what a model file holds, and what a broken or hostile one gets."""

import copy
import json
import random

import pytest

from bochner import kernels as k
from bochner.errors import BochnerError, KernelError


def test_it_is_plain():
    kernel = 0.5 * k.Gaussian([0.1, 2.0]) + k.Chi2().on(["a", 3])
    assert kernel.to_json() == {
        "kernel": "Sum",
        "parts": [
            {"kernel": "Scale", "factor": 0.5, "inner": {"kernel": "Gaussian", "gamma": [0.1, 2.0]}},
            {"kernel": "On", "inner": {"kernel": "Chi2", "degree": 1.0}, "columns": ["a", 3]},
        ],
    }


def test_names_in_both_spellings_and_defaults():
    assert k.from_json({"kernel": "exp_chi2", "gamma": 2}) == k.ExpChi2(2.0)
    assert k.from_json({"kernel": "Polynomial", "degree": 2}) == k.Polynomial(2)


def test_unresolved_parameters_survive():
    for kernel in (k.Gaussian("scale"), k.SkewedChi2(), k.VovkInfinite("norm"), k.DotProduct([1.0], scale="norm")):
        assert k.from_json(json.loads(json.dumps(kernel.to_json()))) == kernel


def deep(levels):
    item = {"kernel": "Linear"}
    for _ in range(levels):
        item = {"kernel": "Normalized", "inner": item}
    return item


def nested(levels):
    item = 1.0
    for _ in range(levels):
        item = [item]
    return {"kernel": "Gaussian", "gamma": item}


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (None, "an object with the key 'kernel'"),
        ([], "an object with the key 'kernel'"),
        ({}, "an object with the key 'kernel'"),
        ({"kernel": 3}, "an object with the key 'kernel'"),
        ({"kernel": "Gausian"}, "did you mean gaussian"),
        ({"kernel": "os.system"}, "no kernel 'os.system'"),
        ({"kernel": "Gaussian", "width": 1}, "Gaussian has no parameter width"),
        ({"kernel": "Gaussian", 3: 1}, "Gaussian has no parameter 3"),
        ({"kernel": "Gaussian", "gamma": None}, "gamma must be a number"),
        ({"kernel": "Gaussian", "gamma": "wide"}, "gamma must be a positive number or one of"),
        ({"kernel": "Gaussian", "gamma": [[1], [1, 2]]}, r"gamma\[0\] must be a number"),
        ({"kernel": "Gaussian", "gamma": {"kernel": "Linear"}}, "gamma must be a number"),
        ({"kernel": "Gaussian", "gamma": float("nan")}, "gamma must be a finite number"),
        ({"kernel": "Gaussian", "gamma": 10**400}, "gamma must be a finite number"),
        ({"kernel": "Polynomial"}, "Polynomial cannot be made from nothing"),
        ({"kernel": "Polynomial", "degree": 10**12}, "whole number"),
        ({"kernel": "DotProduct", "function_": "exp"}, "DotProduct cannot be made from function_"),
        ({"kernel": "DotProduct", "function": "exp"}, "no parameter function"),
        ({"kernel": "DotProduct", "coefficients": 1}, "coefficients are a list"),
        ({"kernel": "DotProduct", "coefficients": [1], "radius": [1]}, "radius must be a number"),
        ({"kernel": "Sum", "parts": []}, "made of two or more kernels"),
        ({"kernel": "Sum", "parts": [1, 2]}, "made of two or more kernels"),
        ({"kernel": "Sum", "parts": {"kernel": "Linear"}}, "made of two or more kernels"),
        ({"kernel": "Scale", "factor": -1, "inner": {"kernel": "Linear"}}, "factor of a kernel must be"),
        ({"kernel": "Scale", "factor": 1, "inner": 2}, "made of kernels"),
        ({"kernel": "On", "inner": {"kernel": "Linear"}, "columns": []}, "at least one column"),
        ({"kernel": "On", "inner": {"kernel": "Linear"}, "columns": [1.5]}, "a column is a position"),
        ({"kernel": "On", "inner": {"kernel": "Linear"}, "columns": [[0]]}, "a column is a position"),
        ({"kernel": "On", "inner": {"kernel": "Linear"}, "columns": {"kernel": "Linear"}}, "a column is a position"),
        (deep(70), "nested deeper than"),
        (deep(500), "nested deeper than"),
        (nested(500), "nested deeper than"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_refused(item, message):
    with pytest.raises(KernelError, match=message):
        k.from_json(item)


WEIRD = [None, True, -1, 0, 1e308, 10**400, float("nan"), "", "norm", "0:3", "Linear", [], [1], [[1], [1, 2]], {}]
WEIRD += [{"kernel": "Linear"}, {"kernel": "Gaussian", "gamma": "scale"}]


def places(item, found):
    """Every (container, key) of a JSON tree."""
    pairs = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
    for key, value in pairs:
        found.append((item, key))
        places(value, found)
    return found


def broken(item, rng):
    item = copy.deepcopy(item)
    for _ in range(rng.randint(1, 3)):
        container, key = rng.choice(places(item, []))
        match rng.randrange(4):
            case 0:
                container[key] = copy.deepcopy(rng.choice(WEIRD))
            case 1:
                container[key] = [container[key]]
            case 2 if isinstance(container, dict):
                container[rng.choice(["gamma", "parts", "inner", "columns", "scale"])] = container.pop(key)
            case _:
                del container[key]
        if not places(item, []):
            break
    return item


def test_fuzz():
    rng = random.Random(0)
    items = [json.loads(json.dumps(kernel.to_json())) for kernel in k.examples()]
    items.append(k.Linear().on(["a b", 4]).to_json())
    read = 0
    for _ in range(2_000):
        item = broken(rng.choice(items), rng)
        try:
            kernel = k.from_json(item)
        except BochnerError:
            continue
        read += 1
        assert k.from_json(kernel.to_json()) == kernel, item
        assert k.parse(str(kernel)) == kernel, item
    assert 50 < read < 1_950


def test_fuzz_of_the_characters():
    rng = random.Random(1)
    texts = [json.dumps(kernel.to_json()) for kernel in k.examples()]
    for _ in range(2_000):
        text = list(rng.choice(texts))
        for _ in range(rng.randint(1, 3)):
            text[rng.randrange(len(text))] = rng.choice('0123456789[]{}",:.-eE ')
        try:
            k.from_json(json.loads("".join(text)))
        except (json.JSONDecodeError, BochnerError):
            continue
