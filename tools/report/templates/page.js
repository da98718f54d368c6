// Draws every chart of the page. Vega's expressions are interpreted (ast: true), so that no code is made from text.
(function () {
  "use strict";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  // A chart as wide as the column whose height follows from its rows: meant so here, and no reason for a warning.
  const warn = console.warn.bind(console);
  console.warn = (...words) => words.some((word) => String(word).startsWith('Dropping "fit-')) || warn(...words);

  function draw(place) {
    const spec = JSON.parse(document.getElementById(place.dataset.chart).textContent);
    const options = {
      renderer: "svg",
      ast: true,
      tooltip: { theme: dark.matches ? "dark" : "light" },
      actions: { export: true, source: false, compiled: false, editor: false },
      downloadFileName: place.dataset.chart,
    };
    return window.vegaEmbed(place, spec, options).then(
      function () { place.dataset.drawn = "yes"; },
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
  if (window.innerWidth < 1100) {
    const contents = document.querySelector("nav.contents details");
    if (contents) contents.open = false;
  }
  Promise.all(places.map(draw)).then(function () {
    fold();
    document.documentElement.dataset.charts = "drawn";
  });
})();
