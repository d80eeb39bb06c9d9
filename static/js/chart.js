// Draws every [data-chart] with the figure that json_script put beside it, in the colours of the page.
// Plotly comes from the installed wheel.
"use strict";

(() => {
  // The figure's own colours, made for paper, and the page's names for the same things.
  const NAMES = {
    "#0b5d73": "--buyer", "#9a4600": "--seller", "#6b6459": "--ink-3", "#7b2a6b": "--you", "#4d6b1f": "--zone-edge",
    "#a11b1b": "--alarm", "#fffefb": "--surface",
  };

  function recoloured(value, colour) {
    if (typeof value === "string") return NAMES[value] ? colour(NAMES[value]) : value;
    if (Array.isArray(value)) return value.map((each) => recoloured(each, colour));
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, recoloured(each, colour)]));
    return value;
  }

  function draw() {
    const page = getComputedStyle(document.body);
    const probe = document.body.appendChild(document.createElement("span"));
    const colour = (name) => {
      probe.style.color = `var(${name})`; // resolves light-dark()
      return getComputedStyle(probe).color;
    };
    const axis = { gridcolor: colour("--rule"), linecolor: colour("--rule-strong"), zerolinecolor: colour("--rule-strong") };
    for (const place of document.querySelectorAll("[data-chart]")) {
      const source = document.getElementById(place.dataset.chart);
      if (!source || !window.Plotly) continue;
      const figure = recoloured(JSON.parse(source.textContent), colour);
      const { title, ...rest } = figure.layout; // the page shows it as a heading
      const layout = {
        ...rest,
        margin: { ...rest.margin, t: 24, l: 60 },
        xaxis: { ...rest.xaxis, ...axis },
        yaxis: { ...rest.yaxis, ...axis },
        font: { color: page.color, family: page.fontFamily },
      };
      window.Plotly.react(place, figure.data, layout, { displayModeBar: false, responsive: true });
    }
    probe.remove();
  }

  draw();
  // A page may swap charts in; those that go give their listeners back first.
  document.addEventListener("htmx:beforeSwap", (event) => {
    for (const place of event.detail.target.querySelectorAll("[data-chart]")) window.Plotly?.purge(place);
  });
  document.addEventListener("htmx:afterSettle", draw); // Settling puts attributes back, and Plotly's class among them.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
})();
