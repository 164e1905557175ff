"""The order desk: what goes right, what goes wrong in a sentence, and a state that can be looked at and put back."""

from __future__ import annotations

import gc
import json
import re
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agentlab.worlds.orders import FIRST, OrderDesk, Rows, money


@pytest.fixture
def desk(tmp_path: Path) -> OrderDesk:
    return OrderDesk(tmp_path / "orders.sqlite")


# ---- what is asked ----
def test_search_finds_every_word_in_any_case(desk: OrderDesk) -> None:
    found = desk.search_orders("HADDAD shipped")
    assert re.findall(r"^\d{4}", found, re.MULTILINE) == ["1042"]
    assert found.endswith("1 order in all.")


def test_search_finds_words_that_are_not_ascii(desk: OrderDesk) -> None:
    assert "Kraków" in desk.search_orders("kraków")
    assert "Zoë Lindqvist" in desk.search_orders("ZOË")


def test_a_search_that_finds_nothing_says_so_and_what_to_try(desk: OrderDesk) -> None:
    assert desk.search_orders("zebra stripes") == (
        "No order contains 'zebra stripes'; 60 orders were searched. To find more, search for one word only, such as "
        "'zebra', or look by the customer's last name, the city or the product."
    )


def test_a_cut_list_says_how_much_it_shows_and_prints_the_next_call(desk: OrderDesk) -> None:
    lines = desk.search_orders("spring sale", limit=3).splitlines()
    assert len(lines) == 4
    assert lines[-1] == "Showing 3 of 54 orders. For all of them: search_orders(keyword='spring sale', limit=54)."


def test_one_search_gives_a_huge_result(desk: OrderDesk) -> None:
    found = desk.search_orders("spring sale", limit=100)
    assert found.splitlines()[-1] == "54 orders in all."
    assert len(found) > 10_000
    # The first 2,000 characters hold one of the three returned orders: a part that can be taken for the whole (F2).
    assert found.count(": returned") == 3
    assert found[:2_000].count(": returned") == 1


@pytest.mark.parametrize(
    ("keyword", "limit", "said"),
    [("  ", 5, "The keyword is empty."), ("lamp", 0, "from 1 to 100, not 0"), ("lamp", 101, "from 1 to 100, not 101")],
)
def test_a_search_that_cannot_be_made_names_the_parameter(desk: OrderDesk, keyword: str, limit: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        desk.search_orders(keyword, limit)


def test_status_tells_where_an_order_is(desk: OrderDesk) -> None:
    told = desk.order_status(1042)
    assert told.startswith("Order 1042: shipped on 2026-04-27 with Northwind, tracking NW-104-2217, expected by")
    assert "Nadia Haddad" in told
    assert "Total 131.00 EUR." in told


@pytest.mark.parametrize("number", range(FIRST, FIRST + 60))
def test_every_order_has_a_status_to_tell(desk: OrderDesk, number: int) -> None:
    told = desk.order_status(number)
    assert told.startswith(f"Order {number}: ")
    assert " on  " not in told
    assert "tracking ," not in told


def test_an_unknown_number_gets_a_sentence(desk: OrderDesk) -> None:
    for act in (desk.order_status, desk.refund, desk.delete_order):
        with pytest.raises(LookupError, match=r"There is no order 9999\. Order numbers run from 1001 to 1060"):
            act(9999)


# ---- what is changed ----
def test_an_address_changes_once(desk: OrderDesk) -> None:
    assert desk.change_address(1044, " 7 Quay Street,\n Bristol ").startswith("Order 1044 now goes to 7 Quay Street, Bristol")
    assert desk.change_address(1044, "7 Quay Street, Bristol").endswith("Nothing was changed.")
    assert "Address: 7 Quay Street, Bristol." in desk.order_status(1044)
    assert len(desk.changes()) == 1


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (1042, "ask Northwind to redirect the parcel"),
        (1030, "was delivered on .* a new order is needed"),
        (1013, "is cancelled and will not be sent"),
        (1023, "is returned and will not be sent"),
    ],
)
def test_an_address_that_can_no_longer_change_says_what_can_be_done(desk: OrderDesk, number: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        desk.change_address(number, "7 Quay Street, Bristol")
    assert desk.changes() == []


def test_a_second_refund_changes_nothing_and_says_so(desk: OrderDesk) -> None:  # I3
    assert desk.refund(1047) == "38.00 EUR for order 1047 were refunded to Ada Moreno."
    state = desk.snapshot()
    assert desk.refund(1047) == "Order 1047 was already refunded: 38.00 EUR on 2026-05-01. Nothing was paid now."
    assert desk.snapshot() == state
    assert desk.refund(1017) == "Order 1017 was already refunded: 68.00 EUR on 2026-04-09. Nothing was paid now."


def test_the_same_email_goes_out_once(desk: OrderDesk) -> None:  # I3
    assert "was sent to ada@example.com" in desk.send_email(" ada@example.com", "Your order", "It is on its way.")
    assert "not sent again" in desk.send_email("ada@example.com", "Your order", "It is on its way.")
    assert [mail["recipient"] for mail in desk.look("emails")] == ["ada@example.com"]


@pytest.mark.parametrize("to", ["", "ada", "ada@", "@example.com", "a@b.com, c@d.com", "a b@c.com"])
def test_an_email_without_one_address_is_not_sent(desk: OrderDesk, to: str) -> None:
    with pytest.raises(ValueError, match="is not an e-mail address"):
        desk.send_email(to, "Hello", "…")
    assert desk.look("emails") == []


def test_a_deleted_order_is_gone_and_says_so(desk: OrderDesk) -> None:
    assert desk.delete_order(1030).startswith("Order 1030 of ")
    assert "1030:" not in desk.search_orders("spring sale", 100)
    for act in (desk.delete_order, desk.refund, desk.order_status):
        with pytest.raises(LookupError, match="Order 1030 was deleted on 2026-05-01"):
            act(1030)


def test_money_is_kept_in_cents_and_shown_as_text(desk: OrderDesk) -> None:
    assert all(isinstance(item["cents"], int) for item in desk.look("items"))
    assert [money(cents) for cents in (0, 5, 1990, 100_000)] == ["0.00 EUR", "0.05 EUR", "19.90 EUR", "1000.00 EUR"]


# ---- the state ----
def test_the_shop_is_the_same_for_everyone(tmp_path: Path) -> None:
    one, two = OrderDesk(tmp_path / "one.sqlite"), OrderDesk(tmp_path / "two.sqlite")
    assert one.snapshot() == two.snapshot()
    assert one.look() == two.look()
    assert len(one.look()) == 60


def test_looking_shows_rows_and_a_table(desk: OrderDesk) -> None:
    rows = desk.look()
    assert rows[41]["order"] == 1042
    assert rows[41]["total"] == "131.00 EUR"
    assert repr(rows).splitlines()[0].split() == ["order", "customer", "status", "total", "refunded", "address"]
    assert repr(desk.look("deleted")) == "(no rows)"
    assert repr(Rows([{"a": "x" * 90}])).endswith("…")
    with pytest.raises(ValueError, match=r"There is no table 'order'\. Tables: customers, orders, items"):
        desk.look("order")


def test_changes_tells_what_was_done_since_the_start(desk: OrderDesk) -> None:
    assert desk.changes() == []
    desk.change_address(1044, "7 Quay Street, Bristol")
    desk.refund(1047)
    desk.delete_order(1030)
    desk.send_email("ada@example.com", "Hello", "…")
    assert desk.changes() == [
        "Order 1030 of Clara Duarte was deleted.",
        "Order 1044 goes to 7 Quay Street, Bristol instead of Storgatan 18, 411 38 Gothenburg.",
        "Order 1047 was refunded: 38.00 EUR.",
        "The e-mail 'Hello' was sent to ada@example.com.",
    ]
    desk.reset()
    assert desk.changes() == []


def test_a_snapshot_is_put_back_whole(desk: OrderDesk) -> None:
    fresh = desk.snapshot()
    desk.refund(1047)
    later = desk.snapshot()
    desk.restore(fresh)
    assert desk.changes() == []
    desk.restore(later)
    assert desk.changes() == ["Order 1047 was refunded: 38.00 EUR."]


def test_foreign_bytes_are_refused_and_change_nothing(desk: OrderDesk, tmp_path: Path) -> None:
    desk.refund(1047)
    other = sqlite3.connect(tmp_path / "other.sqlite")
    other.execute("CREATE TABLE t (x)")
    other.commit()
    other.close()
    for state in (b"", b"nonsense", (tmp_path / "other.sqlite").read_bytes(), desk.snapshot()[:5_000]):
        with pytest.raises(ValueError, match="not a snapshot of an order desk"):
            desk.restore(state)
    assert desk.changes() == ["Order 1047 was refunded: 38.00 EUR."]
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".restore"] == []


@pytest.mark.timing
def test_snapshots_are_quick(desk: OrderDesk) -> None:
    state = desk.snapshot()

    def best(work: Callable[[], object]) -> float:
        times = []
        for _ in range(5):
            began = time.perf_counter()
            work()
            times.append(time.perf_counter() - began)
        return min(times)

    assert best(desk.snapshot) < 0.005
    assert best(lambda: desk.restore(state)) < 0.005


def test_a_file_that_is_there_is_used_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "shop" / "orders.sqlite"
    OrderDesk(path).refund(1047)
    assert OrderDesk(str(path)).changes() == ["Order 1047 was refunded: 38.00 EUR."]


def test_somebody_elses_file_is_left_alone(tmp_path: Path) -> None:
    foreign, text = tmp_path / "other.sqlite", tmp_path / "notes.txt"
    with sqlite3.connect(foreign) as other:
        other.execute("CREATE TABLE orders (x)")
    other.close()
    text.write_text("not a database at all, but long enough to be read as one " * 20)
    for path in (foreign, text):
        before = path.read_bytes()
        with pytest.raises(ValueError, match="Choose another path"):
            OrderDesk(path).look()
        assert path.read_bytes() == before


def test_nothing_is_written_before_the_first_use(tmp_path: Path) -> None:
    desk = OrderDesk(tmp_path / "orders.sqlite")
    assert "not opened yet" in repr(desk)
    assert len(desk.tools) == 6
    assert not (tmp_path / "orders.sqlite").exists()
    desk.order_status(1042)
    assert repr(desk) == "OrderDesk(60 orders, 0 changes since the start)"


def test_a_desk_without_a_path_takes_its_folder_with_it() -> None:
    desk = OrderDesk()
    folder = desk.path.parent
    assert folder.is_dir()
    del desk
    gc.collect()
    assert not folder.exists()


def test_the_shared_desk_is_made_when_asked_for_and_removed_at_exit() -> None:
    code = (
        "import agentlab.worlds as worlds, sys; assert 'agentlab.worlds.orders' not in sys.modules; "
        "o = worlds.orders; assert o.desk is o.desk and o.tools is o.desk.tools; assert 'not opened' in repr(o.desk); "
        "o.tools[1](order_id=1042); print(o.desk.path)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert not Path(done.stdout.strip()).exists()


def test_unknown_names_are_told() -> None:
    from agentlab import worlds

    with pytest.raises(AttributeError, match=r"There is no world 'moon'\. Worlds: orders"):
        _ = worlds.moon
    with pytest.raises(AttributeError, match="no 'dsk'"):
        _ = worlds.orders.dsk
    assert "orders" in dir(worlds)


# ---- in threads ----
def test_many_threads_at_once_pay_once(desk: OrderDesk) -> None:
    told: list[str] = []
    together = threading.Barrier(8)

    def work(n: int) -> None:
        together.wait()
        told.append(desk.refund(1047))
        told.append(desk.search_orders("lamp", 3))
        told.append(desk.change_address(1053 + n, "7 Quay Street, Bristol"))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 24
    assert sum("were refunded to" in text for text in told) == 1
    assert sum("Nothing was paid now" in text for text in told) == 7
    assert len(desk.changes()) == 9


def test_another_connection_may_look_on(desk: OrderDesk) -> None:
    other = sqlite3.connect(desk.path)
    assert other.execute("SELECT count(*) FROM orders").fetchone() == (60,)
    desk.refund(1047)
    assert other.execute("SELECT refunded_cents FROM orders WHERE id = 1047").fetchone() == (3800,)
    other.close()


# ---- as tools ----
def test_the_tools_and_which_are_dangerous(desk: OrderDesk) -> None:
    assert {tool.name: tool.dangerous for tool in desk.tools} == {
        "search_orders": False,
        "order_status": False,
        "change_address": False,
        "delete_order": True,
        "send_email": True,
        "refund": True,
    }
    assert all(tool.world is desk for tool in desk.tools)
    assert desk.tools is desk.tools


def test_descriptions_have_three_parts_and_every_parameter_is_told(desk: OrderDesk) -> None:  # G1, G2
    for tool in desk.tools:
        what, when, when_not = re.split(r"\n+When(?: not)?: ", tool.description)
        assert min(map(len, (what, when, when_not))) > 30
        for name, about in tool.parameters["properties"].items():
            assert len(name) > 1
            assert about["description"]
        assert len(json.dumps(tool.schema)) < 1_200  # every schema is paid for on every request (G3)


async def test_tools_run_as_the_loop_runs_them(desk: OrderDesk) -> None:
    status = next(tool for tool in desk.tools if tool.name == "order_status")
    assert await status.run({"order_id": 1042}) == desk.order_status(1042)
    assert status(order_id=1042) == desk.order_status(1042)
