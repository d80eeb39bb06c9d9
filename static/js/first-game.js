/*
 * Hints beside a first negotiation: one at a time, at the moment that the page itself shows. Nothing is asked of the
 * server; a room's panels are looked at again whenever they change. What was read is remembered with the room.
 */
(() => {
  "use strict";
  const guide = document.querySelector("[data-guide]");
  const text = guide.querySelector("[data-guide-text]");
  const acts = Object.fromEntries(["next", "show", "hide", "back"].map((name) => [name, guide.querySelector(`[data-guide-${name}]`)]));
  const rest = guide.querySelector("[data-guide-rest]");
  const hints = [...guide.querySelectorAll("[data-hint]")];
  const KEY = `parley-hints-${guide.dataset.room}`;
  const there = (selector) => document.querySelector(selector) !== null;

  const over = () => there("#panel-result:not([hidden])");
  const consented = () => !there('[data-consent=""]');
  const moved = () => there("#log-1 .event--you");
  const playing = () => consented() && !over();
  /* When a hint has something to say; those that are asked first are told first. */
  const moments = [
    ["result", over],
    ["consent", () => !consented() && !over()],
    ["loss", () => playing() && (there("[data-preview-mark]") && there("[data-preview][data-loss]") || there("#panel-offers-1 [data-loses] [data-confirm]"))],
    ["value", () => playing() && !moved()],
    ["theirs", () => playing() && !moved() && there("#panel-offers-1 [data-accept]")],
    ["offer", () => playing() && !moved() && there(".status__turn--mine")],
    ["turns", () => playing() && moved()],
    ["accept", () => playing() && moved() && there("#panel-offers-1 [data-offer]:not([data-loses]) [data-accept]")],
  ];

  let kept = { seen: [], hidden: false };
  try {
    kept = { ...kept, ...JSON.parse(localStorage.getItem(KEY)) };
  } catch {
    // Storage may be forbidden: hints are then remembered as long as the page is open.
  }
  let shown = null;
  let said = "";

  function keep() {
    try {
      localStorage.setItem(KEY, JSON.stringify(kept));
    } catch {
      // As above.
    }
  }

  function draw() {
    const moment = moments.find(([name, holds]) => !kept.seen.includes(name) && holds())?.[0];
    const hint = kept.hidden ? null : hints.find((one) => one.dataset.hint === moment) ?? null;
    guide.hidden = false;
    guide.toggleAttribute("data-quiet", hint === null);
    const saying = kept.hidden ? "hidden" : hint ? moment : over() ? "over" : "rest";
    for (const marked of document.querySelectorAll("[data-guided]")) {
      if (!hint || !marked.matches(hint.dataset.at)) marked.removeAttribute("data-guided");
    }
    if (hint) document.querySelector(hint.dataset.at)?.setAttribute("data-guided", "");
    if (saying === said) return;
    said = saying;
    shown = hint;
    const held = guide.contains(document.activeElement);
    text.replaceChildren(hint ? hint.content.cloneNode(true) : kept.hidden || over() ? "" : rest.content.cloneNode(true));
    acts.next.hidden = acts.show.hidden = !hint;
    acts.hide.hidden = kept.hidden || over() && !hint;
    acts.back.hidden = !kept.hidden;
    if (held && document.activeElement?.hidden !== false) [acts.next, acts.back, acts.hide].find((one) => !one.hidden)?.focus();
  }

  acts.next.addEventListener("click", () => {
    if (shown) kept.seen.push(shown.dataset.hint);
    keep();
    draw();
  });
  acts.hide.addEventListener("click", () => {
    kept.hidden = true;
    keep();
    draw();
  });
  acts.back.addEventListener("click", () => {
    kept = { seen: [], hidden: false };
    keep();
    draw();
  });
  acts.show.addEventListener("click", () => {
    const at = shown && document.querySelector(shown.dataset.at);
    if (!at) return;
    const inside = at.matches("form") ? at.querySelector("input, textarea") : at.querySelector("button:not([hidden]), a[href]");
    if (inside && !inside.disabled) inside.focus();
    else {
      at.tabIndex = -1;
      at.focus();
    }
    at.scrollIntoView({ block: "center" });
  });

  let due = 0;
  const look = () => {
    clearTimeout(due);
    due = setTimeout(draw, 150);
  };
  const watched = new MutationObserver((changes) => {
    if (changes.some((change) => !guide.contains(change.target))) look();
  });
  watched.observe(document.getElementById("main"), { childList: true, subtree: true, attributes: true, attributeFilter: ["hidden", "data-consent", "data-loss"] });
  draw();
})();
