import { expect, test } from "vitest";
import { crc32, csv, harmless, xlsx } from "../src/files/cells";

test.each([
  ["=1+1", "'=1+1"],
  ["+x", "'+x"],
  ["@cmd", "'@cmd"],
  ["-2", "-2"],
  ["+3.5", "+3.5"],
  ["-a", "'-a"],
  ["\tx", "'\tx"],
  ["plain", "plain"],
  ["1-2", "1-2"],
])("%s is written as %s", (text, written) => {
  expect(harmless(text)).toBe(written);
});

test("commas, quotes and line ends are quoted", () => {
  expect(
    csv([
      ["a", "b,c", 'd"e', "f\ng"],
      ["=HYPERLINK(1)", 1.5, null, "Café"],
    ]),
  ).toBe('a,"b,c","d""e","f\ng"\r\n\'=HYPERLINK(1),1.5,,Café\r\n');
});

test("a checksum that zip files use", () => {
  expect(crc32(new TextEncoder().encode("123456789"))).toBe(0xcbf43926);
});

test("a workbook is a zip whose sizes add up", () => {
  const bytes = xlsx([
    [
      "Result",
      [
        ["Name", "Value"],
        ["<Ann & Ben>", 3],
      ],
    ],
  ]);
  const view = new DataView(bytes.buffer);
  expect(view.getUint32(0, true)).toBe(0x04034b50);
  const end = bytes.length - 22;
  expect(view.getUint32(end, true)).toBe(0x06054b50);
  expect(view.getUint32(end + 12, true) + view.getUint32(end + 16, true)).toBe(end);
  expect(view.getUint32(view.getUint32(end + 16, true), true)).toBe(0x02014b50);
  expect(new TextDecoder("latin1").decode(bytes)).toContain("&lt;Ann &amp; Ben&gt;");
});
