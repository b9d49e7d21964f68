// Before anything is drawn: the theme that the workbench was told.
try {
  const theme = localStorage.getItem("allot.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // a browser that keeps nothing follows the system
}
