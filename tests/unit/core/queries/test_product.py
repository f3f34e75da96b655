"""Kronecker products: compared with numpy's kron over the spelt-out table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.queries import MOST_COLUMNS, LinearMap, Mask, Product, Stack, Steps
from bursar.errors import QueryError
from harness.maps import Table, domain_of, mask_of, products, tables

DOMAIN = domain_of(a=3, b=2, c=4)
quick = settings(max_examples=60, deadline=None)


def spelt(product: Product) -> np.ndarray:
    """All rows over the joint cells of the product's own columns, in the order of its masks."""
    rows = np.ones((1, 1), np.int64)
    for mask in product.masks:
        rows = np.kron(rows, mask.steps.at_cells(np.arange(mask.steps.size)))
    return rows


@quick
@given(products(DOMAIN), tables(DOMAIN))
def test_apply_is_the_spelt_out_matrix_times_the_table(product: Product, table: Table) -> None:
    assert product.apply(table).tolist() == (spelt(product) @ table(product.attrs).ravel()).tolist()
    assert product.largest() == np.abs(spelt(product)).max()
    assert product.rows == len(spelt(product))


@quick
@given(products(DOMAIN), tables(DOMAIN), st.data())
def test_rows_can_be_taken(product: Product, table: Table, data: st.DataObject) -> None:
    picks = data.draw(st.lists(st.integers(0, product.rows - 1), max_size=5))
    taken: LinearMap = product.take(picks)
    assert taken.rows == len(picks)
    assert taken.apply(table).tolist() == [int(product.apply(table)[i]) for i in picks]
    assert product.row(product.rows - 1).apply(table).tolist() == product.apply(table)[-1:].tolist()


def test_all_rows_taken_is_the_same_map_and_one_row_is_a_product() -> None:
    product = Product((mask_of(DOMAIN, ("a",), np.eye(3, dtype=int)),))
    assert product.take([0, 1, 2]) is product
    assert isinstance(product.take([1]), Product)
    assert isinstance(product.take([1, 0]), Stack)
    assert product.take([]).rows == 0


def test_the_product_of_nothing_counts_everybody() -> None:
    everybody = Product(())
    table = Table(DOMAIN, np.arange(24))
    assert everybody.apply(table).tolist() == [sum(range(24))]
    assert (everybody.rows, everybody.attrs, everybody.largest()) == (1, (), 1)
    assert everybody.take([0]) is everybody
    assert everybody.take([0, 0]).apply(table).tolist() == [276, 276]


def test_a_mask_without_rows_makes_a_product_without_rows() -> None:
    product = Product((Mask(("a",), (3,), Steps.ranges([], [], 3)), mask_of(DOMAIN, ("b",), [[1, 1]])))
    assert product.rows == 0
    assert product.apply(Table(DOMAIN)).shape == (0,)
    assert product.norms(1)[0].largest() == 0


@pytest.mark.parametrize("row", [-1, 3])
def test_rows_that_are_not_there_are_refused(row: int) -> None:
    with pytest.raises(QueryError, match="not there"):
        Product((mask_of(DOMAIN, ("a",), np.eye(3, dtype=int)),)).take([row])


def test_masks_share_no_column() -> None:
    mask = mask_of(DOMAIN, ("a",), [[1, 1, 1]])
    with pytest.raises(QueryError, match="share"):
        Product((mask, mask))
    with pytest.raises(QueryError, match="share"):
        Product((Mask(("a", "a"), (2, 2), Steps.total(4)),))


def test_more_columns_than_a_table_can_have_are_refused() -> None:
    masks = tuple(Mask((f"c{i}",), (1,), Steps.total(1)) for i in range(MOST_COLUMNS + 1))
    assert Product(masks[1:]).rows == 1
    with pytest.raises(QueryError, match="columns"):
        Product(masks)


def test_what_shrinks_comes_first() -> None:
    """Many rows over a short column beside one row over a long one: the table in between stays small."""
    sizes: list[int] = []

    class Watched(Steps):
        def apply(self, table: np.ndarray) -> np.ndarray:
            sizes.append(table.size)
            return super().apply(table)

    def watched(steps: Steps) -> Watched:
        return Watched(steps.size, steps.starts, steps.at, steps.jump)

    many = Mask(("a",), (3,), watched(Steps.dense(np.ones((50, 3), int))))
    one = Mask(("c",), (4,), watched(Steps.total(4)))
    assert Product((many, one)).apply(Table(DOMAIN, np.arange(24))).tolist() == [276] * 50
    assert sizes == [12, 3]


def test_the_digest_is_of_rows_order_and_columns() -> None:
    eye, flip = np.eye(3, dtype=int), np.eye(3, dtype=int)[::-1]
    made = [
        Product((mask_of(DOMAIN, ("a",), eye),)),
        Product((mask_of(DOMAIN, ("a",), flip),)),
        Product((mask_of(DOMAIN, ("a",), 2 * eye),)),
        Product((Mask(("b",), (3,), Steps.dense(eye)),)),
        Product((mask_of(DOMAIN, ("a",), eye), mask_of(DOMAIN, ("b",), [[1, 1]]))),
        Product((mask_of(DOMAIN, ("b",), [[1, 1]]), mask_of(DOMAIN, ("a",), eye))),
        Product(()),
    ]
    assert len({product.digest for product in made}) == len(made)
    assert Product((Mask(("a",), (3,), Steps.identity(3)),)).digest == made[0].digest
