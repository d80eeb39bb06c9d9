/*
 * A box that narrows a long list as one types: `data-find` on a form names the list's selector. Items are
 * `data-find-item`, groups of them `data-find-group`; `data-find-also` on an item holds words that it does not show.
 * A group that is a `details` begins folded on a phone, opens while one finds and when a link leads into it.
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
    const folds = groups.filter((group) => group.matches("details"));
    const target = () => (location.hash ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null);
    let before = null; // which groups were open when finding began
    const unfold = (finding) => {
      if (finding && !before) before = folds.map((fold) => fold.open);
      if (finding) for (const fold of folds) fold.open = true;
      else if (before) {
        folds.forEach((fold, index) => { fold.open = before[index]; });
        before = null;
      }
    };
    const look = () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const { element, text } of items) element.hidden = !words.every((word) => text.includes(word));
      for (const group of groups) group.hidden = !group.querySelector("[data-find-item]:not([hidden])");
      const left = items.filter(({ element }) => !element.hidden).length;
      list.toggleAttribute("data-finding", words.length > 0);
      unfold(words.length > 0);
      count.textContent = words.length ? (left ? count.dataset.found.replace("%s", left) : count.dataset.none) : "";
    };
    form.hidden = false;
    if (folds.length && matchMedia("(max-width: 47.99rem)").matches) {
      const sought = target();
      for (const fold of folds) fold.open = fold.contains(sought);
      sought?.scrollIntoView();
    }
    form.addEventListener("submit", (event) => event.preventDefault());
    box.addEventListener("input", look);
    if (box.value) look(); // the browser may have kept what was typed
    /* A link to an item that is hidden or folded away shows it. */
    addEventListener("hashchange", () => {
      const sought = target();
      if (sought?.hidden) {
        box.value = "";
        look();
      }
      const fold = folds.find((one) => one.contains(sought));
      if (fold && !fold.open) {
        fold.open = true;
        sought.scrollIntoView();
      }
    });
  }
})();
