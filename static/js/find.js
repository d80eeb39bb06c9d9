/*
 * A box that narrows a long list as one types: `data-find` on a form names the list's selector. Items are
 * `data-find-item`, groups of them `data-find-group`; `data-find-also` on an item holds words that it does not show.
 * The form is hidden without this script, and the list is then whole.
 */
(() => {
  "use strict";
  for (const form of document.querySelectorAll("form[data-find]")) {
    const list = document.querySelector(form.dataset.find);
    const box = form.querySelector("input");
    const count = form.querySelector("[data-find-count]");
    const items = [...list.querySelectorAll("[data-find-item]")].map((element) => ({ element, text: `${element.textContent} ${element.dataset.findAlso ?? ""}`.toLowerCase() }));
    const groups = [...list.querySelectorAll("[data-find-group]")];
    const look = () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const { element, text } of items) element.hidden = !words.every((word) => text.includes(word));
      for (const group of groups) group.hidden = !group.querySelector("[data-find-item]:not([hidden])");
      const left = items.filter(({ element }) => !element.hidden).length;
      list.toggleAttribute("data-finding", words.length > 0);
      count.textContent = words.length ? (left ? count.dataset.found.replace("%s", left) : count.dataset.none) : "";
    };
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    box.addEventListener("input", look);
    if (box.value) look(); // the browser may have kept what was typed
    /* A link to an item that is hidden shows it. */
    addEventListener("hashchange", () => {
      if (document.querySelector(":target")?.hidden) {
        box.value = "";
        look();
      }
    });
  }
})();
