import { effect, signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";
export const theme = signal<Theme>((localStorage.getItem("allot.theme") as Theme) || "auto");
/** Changes whenever colours do: pictures on a canvas are drawn again. */
export const colours = signal(0);

effect(() => {
  if (theme.value === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
  localStorage.setItem("allot.theme", theme.value);
  colours.value = colours.peek() + 1;
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => colours.value++);

const phone = matchMedia("(max-width: 759px)");
const narrow = signal(phone.matches);
phone.addEventListener("change", () => (narrow.value = phone.matches));
/** True on a screen as narrow as a phone's; a page that asks is drawn again when that changes. */
export const useNarrow = (): boolean => narrow.value;

const print = matchMedia("print");
const paper = signal(print.matches);
const printed = (on: boolean) => () => ((paper.value = on), colours.value++);
print.addEventListener("change", () => printed(print.matches)());
addEventListener("beforeprint", printed(true)); // it comes before the change, while there is still time to draw
addEventListener("afterprint", printed(false));
/** True while the page is printed: paper is white, and does not scroll. */
export const usePaper = (): boolean => paper.value;

export const isDark = (): boolean =>
  !paper.value &&
  (theme.value === "dark" || (theme.value === "auto" && matchMedia("(prefers-color-scheme: dark)").matches));
