/*
 * Steps through a finished negotiation. The server has drawn every step; this shows one at a time
 * and lets the marks of the price line travel from one step to the next.
 */
(() => {
  "use strict";
  const stepper = document.querySelector("[data-stepper]");
  if (!stepper) return;
  const steps = [...stepper.querySelectorAll("[data-step]")];
  const range = stepper.querySelector("[data-range]");
  const back = stepper.querySelector("[data-prev]");
  const next = stepper.querySelector("[data-next]");
  const play = stepper.querySelector("[data-play-steps]");
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let current = 0;
  let timer = null;

  function places(step) {
    return new Map([...step.querySelectorAll("[data-mark]")].map((mark) => [mark.dataset.mark, parseFloat(mark.dataset.x)]));
  }

  function travel(from, to) {
    const width = to.querySelector(".price-line__svg")?.clientWidth ?? 0;
    const before = places(from);
    if (!width || calm.matches) return;
    for (const mark of to.querySelectorAll("[data-mark]")) {
      const old = before.get(mark.dataset.mark);
      const shift = old === undefined ? 0 : ((old - parseFloat(mark.dataset.x)) / 100) * width;
      if (Math.abs(shift) > 1) {
        mark.animate([{ transform: `translateX(${shift}px)` }, { transform: "none" }], { duration: 420, easing: "cubic-bezier(0.2, 0.7, 0.2, 1)" });
      }
    }
  }

  function show(index, focus = false) {
    const to = Math.max(0, Math.min(steps.length - 1, index));
    const from = steps[current];
    from.removeAttribute("data-current");
    steps[to].setAttribute("data-current", "");
    if (to !== current) travel(from, steps[to]);
    current = to;
    range.value = String(to + 1);
    range.setAttribute("aria-valuetext", steps[to].querySelector(".step__heading").textContent);
    back.setAttribute("aria-disabled", String(to === 0));
    next.setAttribute("aria-disabled", String(to === steps.length - 1));
    if (to === steps.length - 1) stop();
    if (focus && document.activeElement === document.body) next.focus();
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    play.setAttribute("aria-pressed", "false");
    play.textContent = play.dataset.run;
  }

  back.addEventListener("click", () => show(current - 1));
  next.addEventListener("click", () => show(current + 1));
  range.addEventListener("input", () => show(Number(range.value) - 1));
  play.addEventListener("click", () => {
    if (timer) return stop();
    if (current === steps.length - 1) show(0);
    timer = setInterval(() => show(current + 1), 1600);
    play.setAttribute("aria-pressed", "true");
    play.textContent = play.dataset.pause;
  });
  document.addEventListener("keydown", (event) => {
    if (event.target === range || event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, textarea, select")) return;
    const to = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: steps.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    show(to);
  });

  stepper.setAttribute("data-stepping", "");
  stepper.querySelector("[data-stepper-bar]").hidden = false;
  stepper.querySelector("[data-stepper-keys]").hidden = false;
  show(0);
})();
