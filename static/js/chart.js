// Draws every [data-chart] with the figure that json_script put beside it, in the colours and the width of the page.
// Plotly comes from the installed wheel. Its own answer to a window that changes forgets the height of a figure and
// lays the legend over the plot, so a chart whose place changes is drawn anew instead. Where `data-plotly` on this script
// says where Plotly is, it is fetched when a chart is about to be seen: it is large, and not what such a page is for.
"use strict";

(() => {
  const { plotly } = document.currentScript.dataset;
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

  const widths = new WeakMap(); // Place: the width it was drawn for.
  const watch = new ResizeObserver((seen) => {
    const changed = seen.map((each) => each.target).filter((place) => place.clientWidth && place.clientWidth !== widths.get(place));
    if (changed.length) requestAnimationFrame(() => draw(changed));
  });

  function draw(places) {
    const page = getComputedStyle(document.body);
    const probe = document.body.appendChild(document.createElement("span"));
    const colour = (name) => {
      probe.style.color = `var(${name})`; // resolves light-dark()
      return getComputedStyle(probe).color;
    };
    const axis = { gridcolor: colour("--rule"), linecolor: colour("--rule-strong"), zerolinecolor: colour("--rule-strong") };
    for (const place of places) {
      const source = document.getElementById(place.dataset.chart);
      if (!source) continue;
      const figure = recoloured(JSON.parse(source.textContent), colour);
      const { title, ...rest } = figure.layout; // the page shows it as a heading
      const layout = {
        ...rest,
        margin: { ...rest.margin, t: 24, l: 60 },
        xaxis: { ...rest.xaxis, ...axis },
        yaxis: { ...rest.yaxis, ...axis },
        font: { color: page.color, family: page.fontFamily },
      };
      if (layout.height) place.style.height = `${layout.height}px`;
      if (!window.Plotly) continue;
      layout.width = place.clientWidth || undefined;
      layout.height = place.clientHeight || layout.height;
      if (widths.has(place) && widths.get(place) !== place.clientWidth) window.Plotly.purge(place);
      widths.set(place, place.clientWidth);
      window.Plotly.react(place, figure.data, layout, { displayModeBar: false });
      watch.observe(place);
    }
    probe.remove();
  }

  const all = () => draw(document.querySelectorAll("[data-chart]"));
  all();
  if (plotly) {
    const near = new IntersectionObserver((seen) => {
      if (seen.some((each) => each.isIntersecting)) fetchPlotly();
    }, { rootMargin: "600px" });
    const fetchPlotly = () => {
      near.disconnect();
      const script = document.createElement("script");
      script.src = plotly;
      script.addEventListener("load", all);
      document.head.append(script);
    };
    for (const place of document.querySelectorAll("[data-chart]")) near.observe(place);
    addEventListener("beforeprint", () => { if (!window.Plotly) fetchPlotly(); }, { once: true });
  }
  // A page may swap charts in; those that go give their listeners back first.
  document.addEventListener("htmx:beforeSwap", (event) => {
    for (const place of event.detail.target.querySelectorAll("[data-chart]")) window.Plotly?.purge(place);
  });
  document.addEventListener("htmx:afterSettle", all); // Settling puts attributes back, and Plotly's class among them.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  new MutationObserver(all).observe(document.documentElement, { attributeFilter: ["data-theme"] });
})();
