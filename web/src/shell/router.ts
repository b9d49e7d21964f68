/** Which page is shown follows from the address; going elsewhere does not load a document. */

import { computed, signal } from "@preact/signals";

export const address = signal(location.pathname + location.search);
export const path = computed(() => address.value.split("?")[0] ?? "/");
export const query = computed(() => new URLSearchParams(address.value.split("?")[1] ?? ""));

export function go(to: string, replace = false): void {
  if (to === address.value) return;
  history[replace ? "replaceState" : "pushState"](null, "", to);
  const samePage = to.split("?")[0] === path.value;
  address.value = to;
  if (samePage) return;
  scrollTo(0, 0);
  document.getElementById("main")?.focus({ preventScroll: true });
}

addEventListener("popstate", () => (address.value = location.pathname + location.search));

/** Links of ours are followed here; those that open elsewhere, or with a key held, are the browser's. */
addEventListener("click", (event) => {
  const link = (event.target as Element).closest?.("a");
  if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
  if (link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  if (!/^\/(solve|jobs|compare|workers)?(\/|$)/.test(link.pathname)) return;
  if (link.hash && link.pathname === location.pathname) return;
  event.preventDefault();
  go(link.pathname + link.search);
});
