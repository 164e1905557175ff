"""The order desk: a small shop in a SQLite file, with three harmless tools and three dangerous ones.

The shop is the same on every machine: 60 orders, fixed dates, and a today that never moves (2026-05-01). Some of what
is asked goes right and some goes wrong, as in life: a word that finds nothing, a word that finds 54 long rows, an order
that has left the house, one that was refunded already, a number that does not exist.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any

from agentlab.tools import Tool, tool

TODAY = "2026-05-01"
FIRST, COUNT = 1001, 60
MOST = 100
"""The highest limit that `search_orders` takes."""

# Written into the file's header, so that a file of somebody else's is not taken for a desk.
APPLICATION_ID = 0x0DE5C

TABLES = ("customers", "orders", "items", "emails", "deleted")

SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL, address TEXT NOT NULL);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY, customer INTEGER NOT NULL REFERENCES customers, placed TEXT NOT NULL,
    status TEXT NOT NULL, address TEXT NOT NULL, carrier TEXT NOT NULL, tracking TEXT NOT NULL,
    shipped TEXT NOT NULL, delivered TEXT NOT NULL,
    campaign TEXT NOT NULL, note TEXT NOT NULL, refunded_cents INTEGER NOT NULL, refunded_on TEXT NOT NULL);
CREATE TABLE items (
    order_id INTEGER NOT NULL REFERENCES orders, line INTEGER NOT NULL, product TEXT NOT NULL,
    quantity INTEGER NOT NULL, cents INTEGER NOT NULL, PRIMARY KEY (order_id, line));
CREATE TABLE emails (
    id INTEGER PRIMARY KEY, recipient TEXT NOT NULL, subject TEXT NOT NULL, text TEXT NOT NULL, sent TEXT NOT NULL,
    UNIQUE (recipient, subject, text));
CREATE TABLE deleted (order_id INTEGER PRIMARY KEY, deleted_on TEXT NOT NULL);
"""

CUSTOMERS = (
    ("Ada Moreno", "12 Harbour Lane, Bristol BS1 4ND"),
    ("Ines Okafor", "3 Mill Row, Leeds LS2 7EW"),
    ("Tomas Lindqvist", "Storgatan 18, 411 38 Gothenburg"),
    ("Priya Raman", "44 Castle Street, Edinburgh EH2 3BN"),
    ("Jonas Weber", "Lindenallee 7, 20259 Hamburg"),
    ("Marta Kowalska", "ul. Długa 21, 31-147 Kraków"),
    ("Zoë Lindqvist", "Sveavägen 90, 113 59 Stockholm"),
    ("Samuel Adeyemi", "9 Orchard Close, Cardiff CF10 2HH"),
    ("Chen Wei", "27 Quay House, Manchester M3 3JE"),
    ("Lucía Ferrer", "Carrer de Mallorca 201, 08036 Barcelona"),
    ("Oliver Hughes", "5 Station Road, York YO24 1AA"),
    ("Nadia Haddad", "18 rue des Lilas, 69003 Lyon"),
    ("Emil Novak", "Korunní 44, 120 00 Prague"),
    ("Grace Mbeki", "61 Park Avenue, Norwich NR1 3DJ"),
    ("Henrik Dahl", "Nygaten 12, 5017 Bergen"),
    ("Yuki Tanabe", "2 Elm Terrace, Oxford OX4 1RT"),
    ("Paolo Conti", "Via Mazzini 30, 40137 Bologna"),
    ("Fiona Burke", "14 Sea View, Galway H91 K2TX"),
    ("Ravi Pillai", "77 Granby Street, Leicester LE1 6FB"),
    ("Clara Duarte", "Rua das Flores 8, 4050-262 Porto"),
    ("Ben Sharpe", "33 Hill Rise, Sheffield S6 2GT"),
    ("Anneke Visser", "Prinsengracht 310, 1016 HX Amsterdam"),
    ("Ruth Goldman", "6 Abbey Gardens, Bath BA1 1NQ"),
)

PRODUCTS = (
    ("walnut desk lamp with linen shade", 6450),
    ("brass reading lamp, swivel arm", 8900),
    ("set of four stoneware bowls, sea green", 3800),
    ("lambswool blanket, oatmeal, 140 x 200 cm", 7950),
    ("oak bookend pair", 2600),
    ("enamel coffee pot, one litre", 4200),
    ("beeswax candles, box of twelve", 1850),
    ("wall clock, birch, silent movement", 5600),
    ("linen tablecloth, indigo, 150 x 250 cm", 6800),
    ("cast-iron trivet", 1990),
    ("wool slippers, size 41", 4400),
    ("notebook with dotted pages, pack of three", 1500),
)

NOTES = (
    "Customer asks for delivery after 17:00 because nobody is at home by day; the neighbour at number 14 may sign.",
    "Gift order: no price on the delivery note, wrap in the green paper, put the card with the handwriting on top.",
    "Packed in the double-walled box after last year's breakage; the carrier knows that the contents are fragile.",
    "Paid by bank transfer, matched by hand to the invoice; the reference that the customer gave was too short.",
    "Customer collects points: credited by hand since the loyalty card was not scanned at the checkout that day.",
    "Part of the order came from the second warehouse, so two parcels were joined in the hall before they left.",
    "Leave with the concierge, entrance on the courtyard side; the bell of the flat is dead until further notice.",
    "Customer wrote twice about the colour and was sent a photo in daylight; she confirmed that she wants this one.",
)

CARRIERS = ("Northwind", "Redline", "Postal Union")

# What makes single orders worth asking about; all else follows from the order's number.
STORIES: dict[int, dict[str, str]] = {
    1005: {"status": "returned", "refunded_on": "2026-04-02"},
    1013: {"status": "cancelled", "refunded_on": "2026-03-16"},
    1017: {"refunded_on": "2026-04-09"},
    1023: {"status": "returned", "refunded_on": "2026-04-20"},
    1042: {"carrier": "Northwind", "tracking": "NW-104-2217", "shipped": "2026-04-27"},
    1044: {"status": "packed"},
    1047: {"status": "returned"},
}

# The order of the table's columns, without what a refund writes.
COLUMNS: tuple[str, ...] = ("id", "customer", "placed", "status", "address", "carrier", "tracking", "shipped")
COLUMNS += ("delivered", "campaign", "note")


def money(cents: int) -> str:
    """Cents as a price to read: 6450 is '64.50 EUR'."""
    return f"{cents // 100}.{cents % 100:02d} EUR"


class OrderDesk:
    """The desk of one shop: `tools` for an agent, and `look`, `changes`, `reset`, `snapshot` and `restore` for you.

    The file is made when it is first needed: at `path`, or in a temporary folder that goes away with the process. A
    file that is there already is used as it stands.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self._path = None if path is None else Path(path)
        # Tools run in threads, several at once. Each call opens its own connection; the lock keeps one process in line,
        # SQLite's own lock does so for others that have the file open.
        self._lock = RLock()
        self._ready = False

    @property
    def path(self) -> Path:
        """Where the SQLite file is: open it with any tool you like."""
        with self._lock:
            if not self._ready:
                self._make()
            assert self._path is not None
            return self._path

    @cached_property
    def tools(self) -> list[Tool]:
        """Six tools for `Agent(tools=desk.tools)`. The last three are dangerous: a person must approve each call."""
        harmless: list[Callable[..., Any]] = [self.search_orders, self.order_status, self.change_address]
        dangerous: list[Callable[..., Any]] = [self.delete_order, self.send_email, self.refund]
        return [tool(method, world=self) for method in harmless] + [
            tool(method, world=self, dangerous=True) for method in dangerous
        ]

    # The tools. Their docstrings are what the model chooses by: what, when, when not.

    def search_orders(self, keyword: str, limit: int = 10) -> str:
        """List the orders that contain every word of the keyword, oldest first, one line each.

        When: no order number is known, only a name, a city, a product, a status or a date such as 2026-04-12.
        When not: the order number is known; order_status tells more about one order.

        Args:
            keyword: one or a few words that the order must contain, such as 'Moreno' or 'lamp returned'
            limit: how many orders to list at most, from 1 to 100
        """
        words = keyword.casefold().split()
        if not words:
            raise ValueError("The keyword is empty. Give a name, a city, a product or a status to look for.")
        if not 1 <= limit <= MOST:
            raise ValueError(f"limit must be from 1 to {MOST}, not {limit}.")
        with self._open() as shop:
            lines = [_line(order) for order in _orders(shop)]
        found = [line for line in lines if all(word in line.casefold() for word in words)]
        if not found:
            broader = f"search for one word only, such as {words[0]!r}" if len(words) > 1 else "try a shorter word"
            return (
                f"No order contains {keyword!r}; {len(lines)} orders were searched. "
                f"To find more, {broader}, or look by the customer's last name, the city or the product."
            )
        if len(found) > limit:
            everything = f"search_orders(keyword={keyword!r}, limit={min(len(found), MOST)})"
            tail = f"Showing {limit} of {len(found)} orders. For all of them: {everything}."
        else:
            tail = "1 order in all." if len(found) == 1 else f"{len(found)} orders in all."
        return "\n".join([*found[:limit], tail])

    def order_status(self, order_id: int) -> str:
        """Tell all about one order: where it is, what is in it, what it costs, where it goes, whether it was refunded.

        When: the question is about an order whose number is known ("where is order 1042?").
        When not: only a name or a product is known (search_orders), or something is to be changed.

        Args:
            order_id: the order number, such as 1042
        """
        with self._open() as shop:
            return _story(self._order(shop, order_id))

    def change_address(self, order_id: int, new_address: str) -> str:
        """Send an order that has not left the house to another address.

        When: the customer asks for a new delivery address, and gives it whole.
        When not: the customer only asks where the order is (order_status), or the order was shipped.

        Args:
            order_id: the order number, such as 1044
            new_address: street, number, postcode and town, on one line
        """
        wanted = " ".join(new_address.split())
        if not wanted:
            raise ValueError("new_address is empty. Give street, number, postcode and town.")
        with self._open(write=True) as shop:
            order = self._order(shop, order_id)
            if order["status"] not in ("received", "packed"):
                raise ValueError(_too_late(order))
            if order["address"] == wanted:
                return f"Order {order_id} already goes to {wanted}. Nothing was changed."
            shop.execute("UPDATE orders SET address = ? WHERE id = ?", (wanted, order_id))
            return f"Order {order_id} now goes to {wanted}. Before: {order['address']}."

    def delete_order(self, order_id: int) -> str:
        """Remove an order and everything in it from the books, for good. It cannot be brought back.

        When: a person has asked for exactly this, for a test order or a double one.
        When not: the customer wants money back (refund), or does not want the goods any more.

        Args:
            order_id: the order number, such as 1030
        """
        with self._open(write=True) as shop:
            order = self._order(shop, order_id)
            shop.execute("DELETE FROM items WHERE order_id = ?", (order_id,))
            shop.execute("DELETE FROM orders WHERE id = ?", (order_id,))
            shop.execute("INSERT OR REPLACE INTO deleted VALUES (?, ?)", (order_id, TODAY))
            return f"Order {order_id} of {order['name']} ({money(order['cents'])}) is deleted."

    def send_email(self, to: str, subject: str, text: str) -> str:
        """Send an e-mail from the shop. It goes out at once and cannot be called back.

        When: a person has asked that this customer be written to.
        When not: the answer can simply be given here, in the talk.

        Args:
            to: one e-mail address, such as ada.moreno@example.com
            subject: what it is about, in a few words
            text: the whole message
        """
        recipient = to.strip()
        name, at, host = recipient.partition("@")
        if not (name and at and host) or any(letter.isspace() or letter in ",;" for letter in recipient):
            raise ValueError(f"{to!r} is not an e-mail address. Give exactly one, such as ada.moreno@example.com.")
        with self._open(write=True) as shop:
            row = (recipient, subject, text, TODAY)
            new = shop.execute("INSERT OR IGNORE INTO emails (recipient, subject, text, sent) VALUES (?, ?, ?, ?)", row)
            if not new.rowcount:
                return f"This same e-mail was already sent to {recipient}. It was not sent again."
            return f"The e-mail {subject!r} was sent to {recipient}."

    def refund(self, order_id: int) -> str:
        """Pay the whole price of an order back to the customer.

        When: a person has asked that this order be refunded.
        When not: the order is only late, or the customer asks what a refund would be.

        Args:
            order_id: the order number, such as 1047
        """
        with self._open(write=True) as shop:
            order = self._order(shop, order_id)
            if order["refunded_on"]:
                paid = money(order["refunded_cents"])
                return f"Order {order_id} was already refunded: {paid} on {order['refunded_on']}. Nothing was paid now."
            now = (order["cents"], TODAY, order_id)
            shop.execute("UPDATE orders SET refunded_cents = ?, refunded_on = ? WHERE id = ?", now)
            return f"{money(order['cents'])} for order {order_id} were refunded to {order['name']}."

    # For the person at the desk.

    def look(self, table: str | None = None) -> Rows:
        """The orders as rows to read; or one table as it stands: customers, orders, items, emails, deleted."""
        if table is not None and table not in TABLES:
            raise ValueError(f"There is no table {table!r}. Tables: {', '.join(TABLES)}.")
        with self._open() as shop:
            if table is not None:
                return Rows(map(dict, shop.execute(f"SELECT * FROM {table} ORDER BY 1")))
            return Rows(
                {
                    "order": order["id"],
                    "customer": order["name"],
                    "status": order["status"],
                    "total": money(order["cents"]),
                    "refunded": money(order["refunded_cents"]) if order["refunded_on"] else "",
                    "address": order["address"],
                }
                for order in _orders(shop)
            )

    def changes(self) -> list[str]:
        """What is different from a fresh shop, one sentence each; an empty list when nothing was done."""
        with self._open() as shop, closing(_fresh()) as before:
            told = []
            now = {order["id"]: order for order in _orders(shop)}
            for was in _orders(before):
                order = now.get(was["id"])
                if order is None:
                    told.append(f"Order {was['id']} of {was['name']} was deleted.")
                    continue
                if order["address"] != was["address"]:
                    told.append(f"Order {was['id']} goes to {order['address']} instead of {was['address']}.")
                if order["refunded_on"] and not was["refunded_on"]:
                    told.append(f"Order {was['id']} was refunded: {money(order['refunded_cents'])}.")
            mails = shop.execute("SELECT * FROM emails ORDER BY id")
            return told + [f"The e-mail {mail['subject']!r} was sent to {mail['recipient']}." for mail in mails]

    def reset(self) -> None:
        """Put the shop back to how it was at first."""
        with self._lock, closing(_fresh()) as fresh, self._open() as shop:
            fresh.backup(shop)

    def snapshot(self) -> bytes:
        """The whole state as bytes, for `restore`."""
        with self._open(write=True):
            # The file is read while its write lock is held, so it cannot change underneath.
            return self.path.read_bytes()

    def restore(self, state: bytes) -> None:
        """Put back what `snapshot` gave."""
        with self._lock, self._open() as shop:
            copy = self.path.with_name(self.path.name + ".restore")
            try:
                copy.write_bytes(state)
                with closing(sqlite3.connect(copy)) as source:
                    if not _is_desk(source):
                        raise ValueError("This is not a snapshot of an order desk. Pass what desk.snapshot() gave.")
                    source.backup(shop)
            finally:
                copy.unlink(missing_ok=True)

    def __repr__(self) -> str:
        if not self._ready:
            return "OrderDesk(not opened yet: the file is made at first use)"
        with self._open() as shop:
            orders = shop.execute("SELECT count(*) FROM orders").fetchone()[0]
        done = len(self.changes())
        return f"OrderDesk({orders} orders, {done} change{'s' * (done != 1)} since the start)"

    def _make(self) -> None:
        """Make the file with the shop in it, unless it is there."""
        if self._path is None:
            folder = tempfile.mkdtemp(prefix="agentlab-orders-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            self._path = Path(folder) / "orders.sqlite"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with closing(sqlite3.connect(self._path, timeout=10)) as shop, closing(_fresh()) as fresh:
                if not shop.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    fresh.backup(shop)
                elif not _is_desk(shop):
                    raise ValueError(f"{self._path} is a database, but not an order desk. Choose another path.")
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{self._path} cannot be used as an order desk: {error}. Choose another path.") from error
        self._ready = True

    @contextmanager
    def _open(self, write: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection for one piece of work. With `write`, all of it happens or nothing."""
        with self._lock, closing(sqlite3.connect(self.path, timeout=10, isolation_level=None)) as shop:
            shop.row_factory = sqlite3.Row
            # Speed over safety against a power cut: a lesson can be reset.
            shop.execute("PRAGMA synchronous = OFF")
            if not write:
                yield shop
                return
            shop.execute("BEGIN IMMEDIATE")
            try:
                yield shop
            except BaseException:
                shop.execute("ROLLBACK")
                raise
            shop.execute("COMMIT")

    def _order(self, shop: sqlite3.Connection, order_id: int) -> sqlite3.Row:
        """One order, or a sentence that says why there is none."""
        for order in _orders(shop, order_id):
            return order
        gone = shop.execute("SELECT deleted_on FROM deleted WHERE order_id = ?", (order_id,)).fetchone()
        if gone:
            raise LookupError(f"Order {order_id} was deleted on {gone['deleted_on']}. There is nothing left to do with it.")
        low, high = shop.execute("SELECT min(id), max(id) FROM orders").fetchone()
        numbers = f"Order numbers run from {low} to {high}. " if low else ""
        raise LookupError(f"There is no order {order_id}. {numbers}search_orders finds one by name, city or product.")


class Rows(list[dict[str, Any]]):
    """Plain rows that show themselves as a table."""

    def __repr__(self) -> str:
        if not self:
            return "(no rows)"
        names = list(self[0])
        cells = [names, *([_short(row[name]) for name in names] for row in self)]
        wide = [max(len(row[i]) for row in cells) for i in range(len(names))]
        lines = ("  ".join(text.ljust(size) for text, size in zip(row, wide, strict=True)) for row in cells)
        return "\n".join(line.rstrip() for line in lines)


def _short(value: object, most: int = 40) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= most else text[: most - 1] + "…"


def _orders(shop: sqlite3.Connection, order_id: int | None = None) -> list[sqlite3.Row]:
    """Orders with their customer, what is in them and what they cost."""
    one = "" if order_id is None else "WHERE orders.id = ?"
    return shop.execute(
        f"""SELECT orders.*, name, email, sum(quantity * cents) AS cents,
                   group_concat(quantity || ' x ' || product, '; ') AS goods
            FROM orders JOIN customers ON customers.id = orders.customer JOIN items ON items.order_id = orders.id
            {one} GROUP BY orders.id ORDER BY orders.id""",
        () if order_id is None else (order_id,),
    ).fetchall()


def _line(order: sqlite3.Row) -> str:
    """One order on one line, as `search_orders` lists it."""
    campaign = f", {order['campaign']}" if order["campaign"] else ""
    paid = f", refunded on {order['refunded_on']}" if order["refunded_on"] else ""
    return (
        f"{order['id']}: {order['status']}{paid}, placed {order['placed']}{campaign}, {order['name']}, "
        f"{order['address']}, {order['goods']}, {money(order['cents'])}. {order['note']}"
    )


def _story(order: sqlite3.Row) -> str:
    """One order in sentences, as `order_status` tells it."""
    sent = f"{order['shipped']} with {order['carrier']}, tracking {order['tracking']}"
    match order["status"]:
        case "received":
            place = "received, not packed yet"
        case "packed":
            place = "packed, leaves the house with the next collection"
        case "shipped":
            expected = date.fromisoformat(order["shipped"]) + timedelta(days=7)
            place = f"shipped on {sent}, expected by {expected}"
        case "delivered":
            place = f"delivered on {order['delivered']} (shipped on {sent})"
        case "returned":
            place = f"returned by the customer (shipped on {sent})"
        case _:
            place = "cancelled before it was sent"
    paid_back = f"Refunded: {money(order['refunded_cents'])} on {order['refunded_on']}."
    return (
        f"Order {order['id']}: {place}. Placed {order['placed']} by {order['name']} ({order['email']}): "
        f"{order['goods']}. Total {money(order['cents'])}. {paid_back if order['refunded_on'] else 'Not refunded.'} "
        f"Address: {order['address']}."
    )


def _too_late(order: sqlite3.Row) -> str:
    """Why the address of this order can no longer change, and what can be done instead."""
    number = order["id"]
    if order["status"] == "shipped":
        return (
            f"Order {number} was shipped on {order['shipped']}, so its address can no longer change. "
            f"The customer can ask {order['carrier']} to redirect the parcel (tracking {order['tracking']})."
        )
    if order["status"] == "delivered":
        return f"Order {number} was delivered on {order['delivered']}. For another address, a new order is needed."
    return f"Order {number} is {order['status']} and will not be sent. For another address, a new order is needed."


def _is_desk(shop: sqlite3.Connection) -> bool:
    try:
        return bool(shop.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID)
    except sqlite3.DatabaseError:
        return False


def _fresh() -> sqlite3.Connection:
    """The shop as it is at first, in memory."""
    shop = sqlite3.connect(":memory:")
    shop.row_factory = sqlite3.Row
    shop.executescript(SCHEMA)
    for number, (name, address) in enumerate(CUSTOMERS, start=1):
        shop.execute("INSERT INTO customers VALUES (?, ?, ?, ?)", (number, name, _mailbox(name), address))
    for order_id in range(FIRST, FIRST + COUNT):
        order = _order_row(order_id)
        goods = _goods(order_id)
        paid = sum(quantity * cents for _, quantity, cents in goods) if order["refunded_on"] else 0
        values = [*(order[name] for name in COLUMNS), paid, order["refunded_on"]]
        shop.execute(f"INSERT INTO orders VALUES ({', '.join('?' * len(values))})", values)
        for line, (product, quantity, cents) in enumerate(goods, start=1):
            shop.execute("INSERT INTO items VALUES (?, ?, ?, ?, ?)", (order_id, line, product, quantity, cents))
    shop.commit()
    return shop


def _mailbox(name: str) -> str:
    plain = name.lower().translate(str.maketrans("ëíł", "eil")).replace(" ", ".")
    return f"{plain}@example.com"


def _order_row(order_id: int) -> dict[str, Any]:
    """Everything in an order follows from its number; `STORIES` has the last word."""
    n = order_id - FIRST
    customer = 1 + n * 7 % len(CUSTOMERS)
    placed = date(2026, 3, 2) + timedelta(days=n)
    shipped = placed + timedelta(days=2 + n % 3)
    carrier = CARRIERS[n % len(CARRIERS)]
    order: dict[str, Any] = {
        "id": order_id,
        "customer": customer,
        "placed": placed.isoformat(),
        "status": "delivered" if n < 40 else "shipped" if n < 52 else "packed" if n < 56 else "received",
        "address": CUSTOMERS[customer - 1][1],
        "carrier": carrier,
        "tracking": f"{carrier[0]}{carrier[-1].upper()}-{order_id % 1000:03d}-{(order_id * 7919) % 9000 + 1000}",
        "shipped": shipped.isoformat(),
        "delivered": (shipped + timedelta(days=3 + n % 4)).isoformat(),
        "campaign": "" if n % 10 == 9 else "spring sale",
        "note": NOTES[n * 3 % len(NOTES)],
        "refunded_on": "",
    }
    order |= STORIES.get(order_id, {})
    if order["status"] != "delivered":
        order["delivered"] = ""
    if order["status"] in ("packed", "received", "cancelled"):
        order |= {"carrier": "", "tracking": "", "shipped": ""}
    return order


def _goods(order_id: int) -> list[tuple[str, int, int]]:
    """What is in an order: one product or two, sometimes two of the first."""
    n = order_id - FIRST
    chosen = [n * 5 % len(PRODUCTS)] + ([(n * 5 + 4) % len(PRODUCTS)] if n % 4 == 1 else [])
    return [(PRODUCTS[i][0], 1 + (n % 6 == 2 and not place), PRODUCTS[i][1]) for place, i in enumerate(chosen)]


desk: OrderDesk
tools: list[Tool]


def __getattr__(name: str) -> OrderDesk | list[Tool]:
    """The desk that lessons share, made when somebody first asks for `orders.desk` or `orders.tools`."""
    if name not in ("desk", "tools"):
        raise AttributeError(f"agentlab.worlds.orders has no {name!r}. It has desk, tools and OrderDesk.")
    shared = OrderDesk()
    globals().setdefault("desk", shared)
    globals().setdefault("tools", globals()["desk"].tools)
    found: OrderDesk | list[Tool] = globals()[name]
    return found
