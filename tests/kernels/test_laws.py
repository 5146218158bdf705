"""Every law over every example of the register."""

import kernel_laws as laws
import numpy as np
import pytest

from bochner import kernels

EXAMPLES = list(kernels.examples())
DIMENSIONS = [1, 3, 10, 64]
GRAM_LAWS = [
    laws.symmetric,
    laws.positive,
    laws.diagonal,
    laws.blocks,
    laws.single_precision,
    laws.sparse,
    laws.keeps_input,
    laws.closed_form,
]
OBJECT_LAWS = [laws.survives_json, laws.survives_text, laws.survives_pickle]

each_kernel = pytest.mark.parametrize("kernel", EXAMPLES, ids=str)


def test_every_kernel_has_an_example():
    shown = {type(kernel) for kernel in EXAMPLES} | {type(c) for kernel in EXAMPLES for c in kernel.children()}
    assert shown == set(kernels.registered())


@pytest.mark.parametrize("d", DIMENSIONS)
@pytest.mark.parametrize("law", GRAM_LAWS, ids=lambda law: law.__name__)
@each_kernel
def test_gram(kernel, law, d):
    law(kernel, laws.rows(kernel, d))


@pytest.mark.parametrize("d", DIMENSIONS)
@each_kernel
def test_whole_numbers(kernel, d):
    laws.whole_numbers(kernel, d)


@pytest.mark.parametrize("d", [1, 3])
@each_kernel
def test_edges(kernel, d):
    laws.edges(kernel, d)


@each_kernel
def test_no_columns(kernel):
    if any(isinstance(part, kernels.On) for part in [kernel, *kernel.children()]):
        pytest.skip("asks for a column")
    G = kernel.gram(np.zeros((2, 0)))
    laws.close(G, np.full((2, 2), G[0, 0]))


@pytest.mark.parametrize("law", OBJECT_LAWS, ids=lambda law: law.__name__)
@each_kernel
def test_object(kernel, law):
    law(kernel)


@each_kernel
def test_is_frozen_and_says_what_it_needs(kernel):
    with pytest.raises(AttributeError):
        kernel.anything = 1
    assert kernel.unresolved() == []
    assert kernel.resolve(None) is kernel


@pytest.mark.parametrize("first", EXAMPLES, ids=str)
def test_kernels_differ(first):
    for second in EXAMPLES:
        assert (first == second) == (str(first) == str(second))
