"use strict";
// Tables sort by a click on a heading, and claims filter by verdict and by words. Without this
// script the page shows all rows, in the order of the paper.
// Numbers in their order, rows without one last, anything else as text.
const compare = (a, b) => a === "" || b === "" ? (a === "") - (b === "")
  : isNaN(a) || isNaN(b) ? a.localeCompare(b, "en", {numeric: true}) : a - b;
for (const table of document.querySelectorAll("table.sortable")) {
  table.classList.add("scripted");
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const body = table.tBodies[0];
      const up = head.getAttribute("aria-sort") !== "ascending";
      const key = row => row.cells[column].dataset.key ?? row.cells[column].textContent.trim();
      const rows = [...body.rows].sort((a, b) =>
        (up ? 1 : -1) * compare(key(a), key(b)));
      for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      body.append(...rows);
    });
  });
}
const filter = document.getElementById("filter");
if (filter) {
  filter.hidden = false;
  const [chosen, words] = [filter.elements.verdict, filter.elements.words];
  const apply = () => {
    const wanted = words.value.trim().toLowerCase();
    let shown = 0, all = 0;
    for (const row of document.querySelectorAll("table.claims tbody tr")) {
      const fits = (!chosen.value || row.dataset.verdict === chosen.value)
        && row.textContent.toLowerCase().includes(wanted);
      row.hidden = !fits;
      all += 1;
      shown += fits;
    }
    // No headings over nothing.
    for (const table of document.querySelectorAll("table.claims")) {
      const box = table.closest("details") ?? table;
      box.hidden = table.hidden = ![...table.tBodies[0].rows].some(row => !row.hidden);
    }
    for (const details of document.querySelectorAll("details.claims-left"))
      if (chosen.value || wanted) details.open = true;
    document.getElementById("shown").textContent = `${shown} of ${all} claims`;
  };
  filter.addEventListener("input", apply);
  filter.addEventListener("submit", event => event.preventDefault());
  apply();
}
// A link to a claim that is folded away, or filtered out, shows it.
const open = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  if (target.hidden && filter) {
    filter.reset();
    filter.dispatchEvent(new Event("input"));
  }
  const details = target.closest("details");
  if (details) details.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", open);
if (location.hash) open();
// Paper has nothing to click on: what is folded is printed, but for the cells of the table of
// overlaps, which stand in the table, and for the parameters of figures.
let unfolded = [];
addEventListener("beforeprint", () => {
  unfolded = [...document.querySelectorAll("details:not([open]):not(.cells):not(section details)")];
  for (const details of unfolded) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of unfolded) details.open = false;
});
