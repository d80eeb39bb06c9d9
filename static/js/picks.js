/*
 * A long list of boxes to tick, in groups that fold: [data-picks]. Adds a search, a count, a button for each group, and
 * leaves out what does not fit the select named by data-fits-select ([data-fits] on its options and on each pick).
 * Without it every box is there all the same and the form is sent as it stands.
 */
"use strict";

for (const list of document.querySelectorAll("[data-picks]")) {
  const find = list.querySelector("[data-picks-find]");
  const count = list.querySelector("[data-picks-count]");
  const none = list.querySelector("[data-picks-none]");
  const select = document.getElementById(list.dataset.fitsSelect);
  const groups = [...list.querySelectorAll("[data-picks-group]")].map((group) => ({
    group,
    wasOpen: group.open,
    all: group.querySelector("[data-picks-all]"),
    tally: group.querySelector("[data-picks-tally]"),
    picks: [...group.querySelectorAll("[data-pick]")],
  }));
  const box = (pick) => pick.querySelector("input");
  const shown = (picks) => picks.filter((pick) => !pick.hidden);
  const ticked = (picks) => picks.filter((pick) => box(pick).checked);
  let searched = false;

  function tell() {
    const picks = groups.flatMap((each) => each.picks);
    const chosen = ticked(picks).length;
    const text = chosen > 1 ? list.dataset.pairs : list.dataset.counted;
    count.textContent = text
      .replace("CHOSEN", chosen)
      .replace("ALL", picks.filter((pick) => !pick.hasAttribute("data-misfit")).length)
      .replace("PAIRS", chosen * chosen);
    for (const { all, tally, picks: own } of groups) {
      const here = shown(own);
      const playing = own.filter((pick) => !pick.hasAttribute("data-misfit")).length;
      tally.textContent = ticked(own).length ? `${ticked(own).length} / ${playing}` : String(playing);
      all.textContent = here.length && here.every((pick) => box(pick).checked) ? all.dataset.none : all.dataset.all;
    }
  }

  function sift() {
    const letters = find.value.trim().toLowerCase();
    const family = select?.selectedOptions[0]?.dataset.fits ?? "";
    for (const each of groups) {
      for (const pick of each.picks) {
        // What is ticked stays in sight, even where it does not play this market: the answer will say so.
        const fits = !family || pick.dataset.fits.split(" ").includes(family);
        pick.toggleAttribute("data-misfit", !fits);
        pick.hidden = (!fits && !box(pick).checked) || (letters !== "" && !pick.textContent.toLowerCase().includes(letters));
      }
      each.group.hidden = shown(each.picks).length === 0;
      if (letters !== "" && !searched) each.wasOpen = each.group.open;
      if (letters !== "") each.group.open = true;
      else if (searched) each.group.open = each.wasOpen;
    }
    searched = letters !== "";
    none.hidden = groups.some((each) => !each.group.hidden);
    tell();
  }

  list.querySelector("[data-picks-bar]").hidden = false;
  for (const { all, picks } of groups) {
    all.hidden = false;
    all.addEventListener("click", () => {
      const here = shown(picks);
      const tick = !here.every((pick) => box(pick).checked);
      for (const pick of here) box(pick).checked = tick;
      tell();
    });
  }
  find.addEventListener("input", sift);
  // Enter in the search is no launch.
  find.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
  select?.addEventListener("change", sift);
  list.addEventListener("change", tell);
  sift();
}
