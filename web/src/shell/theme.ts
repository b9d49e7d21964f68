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

export const isDark = (): boolean =>
  theme.value === "dark" || (theme.value === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
