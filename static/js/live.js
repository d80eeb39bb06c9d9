// Parts of a page that are swapped in again and again keep what the reader had opened or scrolled to.
// A <details> with data-keep="NAME" stays open or closed; a log that was read to its end stays at its end.
"use strict";

(() => {
  const kept = new Map();

  document.addEventListener("toggle", (event) => {
    const name = event.target.dataset?.keep;
    if (name) kept.set(name, event.target.open);
  }, true);

  document.addEventListener("htmx:beforeSwap", (event) => {
    for (const part of event.detail.target.querySelectorAll("details[data-keep]")) kept.set(part.dataset.keep, part.open);
  });

  document.addEventListener("htmx:afterSwap", () => {
    for (const part of document.querySelectorAll("details[data-keep]")) {
      if (kept.has(part.dataset.keep) && part.open !== kept.get(part.dataset.keep)) part.open = kept.get(part.dataset.keep);
    }
    for (const log of document.querySelectorAll(".run-log")) log.scrollTop = log.scrollHeight;
  });
})();
