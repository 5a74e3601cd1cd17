// Before the first paint: the reader's system decides, until the button does.
"use strict";
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => {
    if ("chosen" in document.documentElement.dataset) return;
    document.documentElement.dataset.theme = system.matches ? "dark" : "light";
    document.dispatchEvent(new Event("themechange"));
  };
  follow();
  system.addEventListener("change", follow);
})();
