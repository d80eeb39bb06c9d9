// Draws every [data-chart] with the figure that json_script put beside it. Plotly comes from the installed wheel.
"use strict";

(() => {
  const ink = getComputedStyle(document.body).color;
  for (const place of document.querySelectorAll("[data-chart]")) {
    const source = document.getElementById(place.dataset.chart);
    if (!source || !window.Plotly) continue;
    const figure = JSON.parse(source.textContent);
    const layout = { ...figure.layout, font: { color: ink, family: "inherit" } };
    window.Plotly.newPlot(place, figure.data, layout, { displayModeBar: false, responsive: true });
  }
})();
