/** The page, built to static files that any prefix can be put before. */
import { defineConfig } from "vite";

export default defineConfig({
  // Relative, so that the page works behind a proxy that serves it under a path.
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2023",
    // An inlined asset is a `data:` URL, which the Content-Security-Policy refuses.
    assetsInlineLimit: 0,
    // Its polyfill is an inline script.
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    sourcemap: false,
    reportCompressedSize: false,
  },
});
