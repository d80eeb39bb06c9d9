/*
 * The explanation of an economic term, beside the word: a link of the class `term` carries it in its title and leads to
 * the glossary. A press opens it here, so that nobody leaves a table or a room for a word; Escape, the button or a press
 * elsewhere close it and give the focus back. With a modifier key, or without this script, the link is a link.
 */
(() => {
  "use strict";
  const { more, close } = document.currentScript.dataset;
  let note = null;
  let word = null;

  function shut({ refocus = true } = {}) {
    if (!note) return;
    note.remove();
    note = null;
    word.removeAttribute("aria-expanded");
    if (refocus) word.focus({ preventScroll: true });
  }

  function open(link) {
    shut({ refocus: false });
    word = link;
    note = document.createElement("div");
    note.className = "term-note";
    note.setAttribute("role", "dialog");
    note.setAttribute("aria-label", link.textContent);
    note.tabIndex = -1;
    const text = document.createElement("p");
    text.textContent = link.title;
    const acts = document.createElement("p");
    acts.className = "term-note__acts";
    const leads = document.createElement("a");
    leads.href = link.href;
    leads.textContent = more;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button button--quiet button--small";
    button.textContent = close;
    button.addEventListener("click", () => shut());
    acts.append(leads, button);
    note.append(text, acts);
    document.body.append(note);
    const at = link.getBoundingClientRect();
    const edge = document.documentElement.clientWidth - note.offsetWidth - 12;
    note.style.left = `${Math.max(12, Math.min(at.left, edge)) + scrollX}px`;
    note.style.top = `${at.bottom + 6 + scrollY}px`;
    link.setAttribute("aria-expanded", "true");
    note.focus({ preventScroll: true });
    note.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a.term");
    if (link && link.title && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      if (note && word === link) shut();
      else open(link);
    } else if (note && !note.contains(event.target)) {
      shut({ refocus: false });
    }
  });
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) shut(); // it stood beside a word that has moved
    width = innerWidth;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && note) {
      event.stopPropagation();
      shut();
    }
  }, true);
})();
