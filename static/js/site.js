/*
 * Loaded in the head of every page, before the style sheet paints: the stored choice of colours,
 * and, once the page is there, the menu, the colours button, the line under a select that says
 * what the chosen option is, and buttons that copy a field (`data-copy` names it). Nothing else.
 */
(() => {
  "use strict";
  const root = document.documentElement;
  const KEY = "parley-theme";

  function stored() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // storage may be forbidden; the system's choice then holds
    }
  }

  function isDark() {
    const chosen = root.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  root.dataset.js = "";
  const theme = stored();
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("[data-theme-button]");
    if (button) {
      // It says what pressing it does.
      const text = button.querySelector("[data-theme-text]");
      const show = () => { text.textContent = isDark() ? button.dataset.light : button.dataset.dark; };
      show();
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
      button.addEventListener("click", () => {
        root.dataset.theme = isDark() ? "light" : "dark";
        try {
          localStorage.setItem(KEY, root.dataset.theme);
        } catch {
          // The choice then lasts as long as the page.
        }
        show();
      });
    }
    for (const select of document.querySelectorAll("select[data-describe]")) {
      const text = document.querySelector(select.dataset.describe);
      const show = () => { text.textContent = select.selectedOptions[0]?.dataset.text ?? ""; };
      select.addEventListener("change", show);
      show();
    }
    document.addEventListener("click", async (event) => {
      const copy = event.target.closest?.("[data-copy]");
      if (!copy) return;
      const field = document.querySelector(copy.dataset.copy);
      field.select();
      try {
        await navigator.clipboard.writeText(field.value);
      } catch {
        document.execCommand("copy"); // plain http has no clipboard object
      }
      const before = copy.textContent;
      if (before === copy.dataset.copied) return;
      copy.textContent = copy.dataset.copied;
      setTimeout(() => { copy.textContent = before; }, 2_000);
    });
    const menu = document.querySelector("[data-menu-button]");
    const nav = document.getElementById("site-nav");
    if (menu && nav) {
      const open = (yes) => {
        nav.toggleAttribute("data-open", yes);
        menu.setAttribute("aria-expanded", String(yes));
      };
      menu.addEventListener("click", () => open(!nav.hasAttribute("data-open")));
      nav.addEventListener("keydown", (event) => {
        if (event.key === "Escape") {
          open(false);
          menu.focus();
        }
      });
    }
  });
})();
