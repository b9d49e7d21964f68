/** Tables as files. Text that a spreadsheet would take for a formula is put behind an apostrophe. */

export type Value = string | number | null;
export type Table = Value[][];

/** A text that begins like a formula and is no number must not be run when the file is opened. */
export function harmless(text: string): string {
  const dangerous = /^[=+\-@\t\r]/.test(text) && !(text.trim() !== "" && Number.isFinite(Number(text)));
  return dangerous ? `'${text}` : text;
}

export function csv(table: Table): string {
  const cell = (value: Value): string => {
    if (value === null) return "";
    const text = typeof value === "number" ? String(value) : harmless(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return `${table.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}

const escaped = (text: string): string =>
  text
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");

const column = (at: number): string =>
  (at < 26 ? "" : column(Math.floor(at / 26) - 1)) + String.fromCharCode(65 + (at % 26));

const HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const RELS = "http://schemas.openxmlformats.org/package/2006/relationships";
const OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

function sheetXml(table: Table): string {
  const rows = table.map((row, i) => {
    const cells = row.map((value, j) => {
      if (value === null || value === "") return "";
      const at = `${column(j)}${i + 1}`;
      if (typeof value === "number" && Number.isFinite(value)) return `<c r="${at}"><v>${value}</v></c>`;
      return `<c r="${at}" t="inlineStr"><is><t xml:space="preserve">${escaped(harmless(String(value)))}</t></is></c>`;
    });
    return `<row r="${i + 1}">${cells.join("")}</row>`;
  });
  return `${HEAD}<worksheet xmlns="${MAIN}"><sheetData>${rows.join("")}</sheetData></worksheet>`;
}

/** A workbook that Excel, LibreOffice and openpyxl read: the fewest parts that make one. */
export function xlsx(sheets: [string, Table][]): Uint8Array<ArrayBuffer> {
  const types = sheets.map(
    (_, at) =>
      `<Override PartName="/xl/worksheets/sheet${at + 1}.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>`,
  );
  const names = sheets.map(
    ([name], at) =>
      `<sheet name="${escaped(name.replace(/[[\]:*?/\\]/g, " ").slice(0, 31))}" sheetId="${at + 1}" r:id="r${at + 1}"/>`,
  );
  const links = sheets.map(
    (_, at) => `<Relationship Id="r${at + 1}" Type="${OFFICE}/worksheet" Target="worksheets/sheet${at + 1}.xml"/>`,
  );
  return zip([
    [
      "[Content_Types].xml",
      `${HEAD}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>${types.join("")}</Types>`,
    ],
    [
      "_rels/.rels",
      `${HEAD}<Relationships xmlns="${RELS}"><Relationship Id="r1" Type="${OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
    ],
    [
      "xl/workbook.xml",
      `${HEAD}<workbook xmlns="${MAIN}" xmlns:r="${OFFICE}"><sheets>${names.join("")}</sheets></workbook>`,
    ],
    ["xl/_rels/workbook.xml.rels", `${HEAD}<Relationships xmlns="${RELS}">${links.join("")}</Relationships>`],
    ...sheets.map(([, table], at): [string, string] => [`xl/worksheets/sheet${at + 1}.xml`, sheetXml(table)]),
  ]);
}

const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  let value = n;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value >>> 0;
});

export function crc32(bytes: Uint8Array): number {
  let sum = 0xffffffff;
  for (const byte of bytes) sum = CRC[(sum ^ byte) & 255]! ^ (sum >>> 8);
  return (sum ^ 0xffffffff) >>> 0;
}

/** A zip whose members are stored as they are. */
export function zip(members: [string, string][]): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder();
  const parts: Uint8Array[] = [],
    index: Uint8Array[] = [];
  let at = 0;
  for (const [name, text] of members) {
    const [title, body] = [encoder.encode(name), encoder.encode(text)];
    const fields = [0x0800, 0, 0, 0x5921, crc32(body), body.length, body.length, title.length, 0] as const;
    const local = record(0x04034b50, [20, ...fields]);
    index.push(record(0x02014b50, [20, 20, ...fields, 0, 0, 0, 0, at], true), title);
    parts.push(local, title, body);
    at += local.length + title.length + body.length;
  }
  const size = index.reduce((sum, part) => sum + part.length, 0);
  const end = new DataView(new ArrayBuffer(22));
  [
    [0, 0x06054b50],
    [12, size],
    [16, at],
  ].forEach(([place, value]) => end.setUint32(place!, value!, true));
  [8, 10].forEach((place) => end.setUint16(place, members.length, true));
  return joined([...parts, ...index, new Uint8Array(end.buffer)]);
}

/** A header: its mark, then 16-bit fields, of which checksum, sizes and place take 32. */
function record(mark: number, fields: number[], central = false): Uint8Array {
  const wide = central ? new Set([6, 7, 8, 15]) : new Set([5, 6, 7]);
  const view = new DataView(new ArrayBuffer(central ? 46 : 30));
  view.setUint32(0, mark, true);
  let at = 4;
  fields.forEach((value, field) => {
    if (wide.has(field) || (central && field === 14)) {
      view.setUint32(at, value, true);
      at += 4;
    } else {
      view.setUint16(at, value, true);
      at += 2;
    }
  });
  return new Uint8Array(view.buffer);
}

function joined(parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) (out.set(part, at), (at += part.length));
  return out;
}
