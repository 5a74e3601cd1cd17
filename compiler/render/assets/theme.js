// Runs before the first paint: the theme follows the system until the reader presses the button.
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
