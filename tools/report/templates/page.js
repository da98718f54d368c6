// Draws every chart of the page. Vega's expressions are interpreted (ast: true), so that no code is made from text.
(function () {
  "use strict";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const smallest = 0.66; // of a chart with a width of its own; a narrower box scrolls

  // A chart as wide as the column whose height follows from its rows: meant so here, and no reason for a warning.
  const warn = console.warn.bind(console);
  console.warn = function () {
    if (!Array.from(arguments).some(function (word) { return String(word).startsWith('Dropping "fit-'); })) {
      warn.apply(null, arguments);
    }
  };

  function fit(place) {
    const drawing = place.querySelector("svg.marks");
    if (!drawing || !place.classList.contains("wide")) return;
    const width = Number(drawing.getAttribute("width"));
    drawing.style.width = Math.min(width, Math.max(place.clientWidth, smallest * width)) + "px";
    drawing.style.height = "auto";
  }

  function narrowed(spec, place) {
    if (place.clientWidth >= 480 || place.classList.contains("wide")) return spec;
    const legend = Object.assign({ orient: "bottom", columns: 2 }, (spec.config || {}).legend);
    return Object.assign({}, spec, { config: Object.assign({}, spec.config, { legend: legend }) });
  }

  function draw(place) {
    const spec = JSON.parse(document.getElementById(place.dataset.chart).textContent);
    const options = {
      renderer: "svg",
      ast: true,
      tooltip: { theme: dark.matches ? "dark" : "light" },
      actions: { export: true, source: false, compiled: false, editor: false },
      downloadFileName: place.dataset.chart,
    };
    return window.vegaEmbed(place, narrowed(spec, place), options).then(
      function () { place.dataset.drawn = "yes"; fit(place); },
      function (error) {
        place.textContent = "This chart could not be drawn: " + error.message;
        console.error(place.dataset.chart, error);
      });
  }

  // A chart is drawn as wide as its place, which has no width in a closed fold: so folds close when all is drawn.
  function fold() {
    const wanted = document.getElementById(decodeURIComponent(window.location.hash.slice(1)));
    document.querySelectorAll("details.detail").forEach(function (one) {
      one.open = Boolean(wanted && one.contains(wanted));
      one.addEventListener("toggle", function () { window.dispatchEvent(new Event("resize")); });
    });
    if (wanted) wanted.scrollIntoView();
  }

  const places = Array.from(document.querySelectorAll("[data-chart]"));
  window.addEventListener("resize", function () { places.forEach(fit); });
  if (window.innerWidth < 1100) {
    const contents = document.querySelector("nav.contents details");
    if (contents) contents.open = false;
  }
  Promise.all(places.map(draw)).then(function () {
    fold();
    document.documentElement.dataset.charts = "drawn";
  });
})();
