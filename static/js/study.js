// Around every page of a participant: tells the server that the page is open, notes pastes and loss of focus as the
// consent says, and loads the page again when another one is due. In the waiting room it also counts the time.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("study-data").textContent);
  const token = document.querySelector("input[name=csrfmiddlewaretoken]")?.value ?? "";
  const atTable = document.getElementById("room-data") !== null;
  let gone = false;

  async function tell(more = {}) {
    if (gone) return;
    try {
      const answer = await fetch(data.beat, {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-CSRFToken": token },
        body: JSON.stringify(more),
        cache: "no-store",
        keepalive: true,
      });
      if (answer.status === 403 || answer.status === 409) return again();
      if (!answer.ok) return;
      const { stamp, notices } = await answer.json();
      if (stamp === data.stamp) return;
      // At the table nothing is loaded again that somebody may be writing in: a message is put above it, and the end
      // of a round is shown by the table itself, which leads on from there.
      if (atTable && sameRound(stamp)) notices.forEach(([number, text]) => show(number, text));
      else again();
    } catch {
      // No connection: the next beat tries again.
    }
  }

  function sameRound(stamp) {
    const [state, round] = stamp.split("-");
    const [ownState, ownRound] = data.stamp.split("-");
    return document.querySelector(".room--ended") !== null || (state === ownState && round === ownRound);
  }

  function show(number, text) {
    if (document.querySelector(`[data-notice="${Number(number)}"]`)) return;
    const words = document.createElement("p");
    words.textContent = text;
    const notice = document.createElement("div");
    notice.className = "study-notice";
    notice.dataset.notice = Number(number);
    notice.dataset.testid = "notice";
    notice.setAttribute("role", "status");
    notice.append(words);
    document.querySelector(".study-strip").prepend(notice);
  }

  function again() {
    gone = true;
    location.reload();
  }

  setInterval(() => { if (document.visibilityState === "visible" || data.every_ms < 5_000) tell(); }, data.every_ms);
  document.addEventListener("visibilitychange", () => { if (document.visibilityState === "visible") tell(); });

  if (data.logs) {
    document.addEventListener("paste", (event) => {
      const length = event.clipboardData?.getData("text").length ?? 0;
      tell({ noticed: "paste", detail: `${length} characters` });
    });
    let away = null;
    window.addEventListener("blur", () => {
      away = Date.now();
      tell({ noticed: "blur" });
    });
    window.addEventListener("focus", () => {
      if (away === null) return;
      tell({ noticed: "focus", detail: `after ${Math.round((Date.now() - away) / 1000)} s` });
      away = null;
    });
  }

  // A form is sent once, whatever the finger does.
  for (const form of document.querySelectorAll("form[data-once]")) {
    form.addEventListener("submit", (event) => {
      if (form.dataset.sent) return event.preventDefault();
      form.dataset.sent = "1";
      gone = true;
      setTimeout(() => { delete form.dataset.sent; gone = false; }, 5_000);
    });
  }

  const wait = document.querySelector("[data-wait]");
  if (wait) {
    const offset = Number(wait.dataset.now) - Date.now();
    const exit = document.querySelector("[data-exit]");
    const left = wait.querySelector("[data-left]");
    const bar = wait.querySelector("progress");
    const total = Number(wait.dataset.limit) - Number(wait.dataset.since);
    const tick = () => {
      const now = Date.now() + offset;
      const rest = Math.max(0, Number(wait.dataset.limit) - now);
      left.textContent = `${Math.floor(rest / 60_000)}:${String(Math.floor((rest % 60_000) / 1000)).padStart(2, "0")}`;
      bar.value = total > 0 ? 1 - rest / total : 1;
      if (exit && now >= Number(wait.dataset.exitAt)) exit.hidden = false;
    };
    tick();
    setInterval(tick, 500);
    tell();
  }

  const copy = document.querySelector("[data-copy-code]");
  copy?.addEventListener("click", async () => {
    const code = document.querySelector("[data-code]");
    try {
      await navigator.clipboard.writeText(code.textContent.trim());
      copy.textContent = copy.dataset.copied;
    } catch {
      getSelection().selectAllChildren(code);
    }
  });
})();
