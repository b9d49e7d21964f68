/** Files that a person keeps. */

import { send } from "../api/http";

export function save(content: BlobPart, name: string, type: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name.replace(/[^\p{L}\p{N} ._-]+/gu, "_");
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A file of the service's own; the key goes in a header, so a plain link would not do. */
export async function saveFrom(path: string, accept: string, name: string): Promise<void> {
  const answer = await send(path, { headers: { Accept: accept } });
  save(await answer.blob(), name, accept);
}

const SHOWN = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-opacity",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
  "paint-order",
];

/** The picture as a document of its own: what the style sheet says of each mark is written on the mark. */
export function svgText(picture: SVGSVGElement): string {
  const copy = picture.cloneNode(true) as SVGSVGElement;
  const [marks, copies] = [picture.querySelectorAll("*"), copy.querySelectorAll("*")];
  marks.forEach((mark, at) => {
    const style = getComputedStyle(mark);
    for (const name of SHOWN) copies[at]!.setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "tabindex", "role", "aria-label", "aria-pressed"]) copies[at]!.removeAttribute(name);
  });
  const box = picture.viewBox.baseVal;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(box.width));
  copy.setAttribute("height", String(box.height));
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of Object.entries({
    x: box.x,
    y: box.y,
    width: box.width,
    height: box.height,
    fill: getComputedStyle(document.body).backgroundColor,
  }))
    ground.setAttribute(name, String(value));
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

/** A picture as pixels, twice as many as it measures. */
export async function png(picture: SVGSVGElement | HTMLCanvasElement): Promise<Blob> {
  let canvas: HTMLCanvasElement;
  if (picture instanceof HTMLCanvasElement) canvas = picture;
  else {
    const box = picture.viewBox.baseVal;
    const image = new Image();
    image.src = URL.createObjectURL(new Blob([svgText(picture)], { type: "image/svg+xml" }));
    await image.decode();
    canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [box.width * 2, box.height * 2];
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(image.src);
  }
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture came"))), "image/png"),
  );
}
