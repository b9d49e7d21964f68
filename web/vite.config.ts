import { defineConfig } from "vite";

export default defineConfig({
  base: "/assets/",
  build: {
    outDir: "../app/web/assets",
    assetsDir: "",
    emptyOutDir: true,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0, // a data: address would need a looser content policy
    target: "es2022",
  },
  test: { include: ["test/**/*.test.ts"] },
} as never);
