import assert from "node:assert/strict";
import { test } from "node:test";
import { beginning, callLine, countHidden, fold, layOut, nameOf, pairs, pieces, tokenCount, wrongArguments } from "./text.ts";

test("hidden characters become visible marks, the rest stays as it is", () => {
  assert.deepEqual(pieces("report\u202Efdp.exe"), [{ text: "report" }, { text: "U+202E", mark: "U+202E: direction character" }, { text: "fdp.exe" }]);
  assert.equal(countHidden("a\u200Bb\uFEFFc\u0007d\u{E0041}"), 4);
  assert.equal(countHidden("plain, 北京, שלום, é, 👍\n\ttab"), 0);
  assert.equal(pieces("broken \uD800 half").filter((piece) => piece.mark).length, 1);
  assert.deepEqual(pieces(""), []);
});

test("a name on a button can hide nothing", () => {
  assert.equal(nameOf("refund"), "refund");
  assert.equal(nameOf("read\u202Egnp.exe"), "read[U+202E]gnp.exe");
  assert.equal(nameOf("n".repeat(5000)), "n".repeat(79) + "…");
  assert.equal(callLine("a\u200Bb", "{}"), "a[U+200B]b()");
});

test("prose keeps its joiners and only shows what could mislead", () => {
  assert.deepEqual(pieces("👩\u200D👧 می\u200Cخواهم", true), [{ text: "👩\u200D👧 می\u200Cخواهم" }]);
  assert.equal(pieces("a\u202Eb", true).length, 3);
});

test("a text is cut between graphemes", () => {
  assert.equal(beginning("abc", 10), "abc");
  assert.equal(beginning("ab👩‍👧", 4), "ab");
  assert.equal(beginning("e\u0301e\u0301", 3), "e\u0301");
  const long = "x".repeat(100_000);
  assert.equal(beginning(long, 50_000).length, 50_000);
});

test("long texts fold, short ones do not", () => {
  assert.deepEqual(fold("one\ntwo"), { head: "one\ntwo", folded: false });
  assert.equal(fold("line\n".repeat(50)).head.split("\n").length, 5);
  assert.equal(fold("x".repeat(5000)).head.length, 360);
  assert.equal(fold("x".repeat(370)).folded, false, "ten hidden characters are not worth a button");
});

test("arguments are laid out word for word", () => {
  assert.equal(layOut('{"a":1,"b":[1,2],"c":{}}'), '{\n  "a": 1,\n  "b": [\n    1,\n    2\n  ],\n  "c": {}\n}');
  assert.match(layOut('{"big":12345678901234567890,"money":49.90}'), /12345678901234567890[^]*49\.90/);
  assert.equal((layOut('{"a":1,"a":2}').match(/"a"/g) ?? []).length, 2, "a doubled name stays visible");
  assert.equal(layOut("not json {"), "not json {");
});

test("escapes of ordinary characters are read, escapes of hidden ones stay", () => {
  const laid = layOut('{"city":"\\u5317\\u4eac","smile":"\\ud83d\\ude00","zero":"a\\u200bb","quote":"\\u0022","line":"\\n","path":"c:\\\\u0041"}');
  assert.match(laid, /"北京"/);
  assert.match(laid, /"😀"/);
  assert.match(laid, /"a\\u200bb"/);
  assert.match(laid, /"\\u0022"/);
  assert.match(laid, /"c:\\\\u0041"/);
  assert.deepEqual(JSON.parse(laid), JSON.parse('{"city":"北京","smile":"😀","zero":"a\u200bb","quote":"\\"","line":"\\n","path":"c:\\\\u0041"}'));
});

test("the names and values of an object, word for word", () => {
  assert.deepEqual(pairs('{"order_id": 1042, "amount": 49.90, "deep": {"a": [1, 2]}, "text": "x, y: {z}"}'), [
    ["order_id", "1042"],
    ["amount", "49.90"],
    ["deep", '{"a": [1, 2]}'],
    ["text", '"x, y: {z}"'],
  ]);
  assert.deepEqual(pairs("{}"), []);
  assert.equal(pairs("[1]"), undefined);
  assert.equal(pairs("{broken"), undefined);
  assert.equal(callLine("refund", '{"order_id": 1042}'), "refund(order_id=1042)");
  assert.ok(callLine("f", `{"a": "${"x".repeat(500)}"}`).length < 80);
});

test("edited arguments are checked before they are sent", () => {
  const schema = { properties: { order_id: { type: "integer" }, reason: { type: "string" } }, required: ["order_id"], additionalProperties: false };
  assert.equal(wrongArguments('{"order_id": 1}', schema), "");
  assert.match(wrongArguments('{"order_id": ', schema), /not JSON yet/);
  assert.match(wrongArguments("[1]", schema), /must be a JSON object/);
  assert.match(wrongArguments("{}", schema), /Missing: order_id/);
  assert.match(wrongArguments('{"order_id": "x"}', schema), /type integer/);
  assert.match(wrongArguments('{"order_id": 1, "oder": 2}', schema), /no argument "oder".*It has: order_id, reason/);
  assert.equal(wrongArguments('{"anything": 1}'), "");
});

test("an estimate carries a tilde", () => {
  assert.equal(tokenCount(12345, true), "12,345");
  assert.equal(tokenCount(12345, false), "~12,345");
});
