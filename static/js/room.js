/*
 * A live room. The server draws; this file carries moves there and drawings back.
 *
 * Frames are JSON, as in docs/protocol.md. What must not get lost is kept: an act stays in the
 * outbox (sessionStorage) under its client_move_id until the server acknowledges or refuses it, and
 * is sent again after every reconnect. What must not be doubled is guarded: one act per thread at a
 * time here, and the same id twice is one move there. Seat events are numbered; a view that does
 * not continue our number is a gap, and we ask for what lies in it. Half-typed text is a draft that
 * survives a reload. Without a working WebSocket the same frames travel by GET and POST.
 */
(() => {
  "use strict";

  const data = JSON.parse(document.getElementById("room-data").textContent);
  const words = document.querySelector("[data-words]").dataset;
  const room = document.querySelector("main");
  const isSeller = data.role === "seller";
  const several = data.threads.length > 1;
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const narrow = matchMedia("(max-width: 59.99rem)");
  const title = document.title;
  const sections = new Map(data.threads.map((b) => [b, document.getElementById(`thread-${b}`)]));

  const PING_MS = 25_000;
  const PONG_MS = 10_000;
  const POLL_AFTER_MS = 3_000;
  const POLL_MS = 2_000;
  const TYPING_EVERY_MS = 2_000;
  const TYPING_SHOWN_MS = 4_000;
  const READ_WAIT_MS = 700;
  const READ_CHARS = 2_000;
  const TOO_LARGE = 1009; // how a server closes on a frame that is too long for it
  const TOO_MANY = 4429; // many pages of this browser listen already; this one asks now and then
  const CONFIRM_GUARD_MS = 250;
  const NOTICE_MS = 10_000;

  const state = {
    seq: data.seq,
    awaiting: new Set(data.awaiting),
    myTurn: data.my_turn,
    ended: data.ended,
    consent: data.consent,
    waiting: data.waiting,
    deadline: data.deadline_at,
    clockOffset: data.server_time ? data.server_time - Date.now() : 0,
    current: data.threads[0],
  };

  // --- Small things -----------------------------------------------------------------------------

  const part = (b, name) => sections.get(b)?.querySelector(`[data-${name}]`);
  /* Text as it is sent: half an emoji is not JSON that others can read. */
  const written = (text) => (text.toWellFormed?.() ?? text).trim();
  const buyerField = (b) => (isSeller ? { buyer: b } : {});

  function remember(storage, key, value) {
    try {
      if (value === null) storage.removeItem(key);
      else storage.setItem(key, JSON.stringify(value));
    } catch {
      // Storage may be full or forbidden: the page then remembers as long as it is open.
    }
  }

  function recall(storage, key, otherwise) {
    try {
      return JSON.parse(storage.getItem(key)) ?? otherwise;
    } catch {
      return otherwise;
    }
  }

  function moveId() {
    if (crypto.randomUUID) return crypto.randomUUID();
    const bytes = crypto.getRandomValues(new Uint8Array(16)); // plain http has no randomUUID
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  }

  function debounced(ms, run) {
    let timer;
    return (...values) => {
      clearTimeout(timer);
      timer = setTimeout(() => run(...values), ms);
    };
  }

  const notice = { since: null, timer: null }; // what is said of the other side's model, until it has moved and one has read it

  function alertRoom(sentence, { mild = false } = {}) {
    const box = document.querySelector("[data-room-alert]");
    clearTimeout(notice.timer);
    notice.since = sentence && mild ? performance.now() : null;
    box.toggleAttribute("data-mild", mild);
    box.textContent = sentence || "";
    box.hidden = !sentence;
  }

  function noticePasses() {
    if (notice.since === null) return;
    clearTimeout(notice.timer);
    notice.timer = setTimeout(alertRoom, Math.max(0, NOTICE_MS - (performance.now() - notice.since)), "");
  }

  // --- Connection -------------------------------------------------------------------------------

  const link = { socket: null, tries: 0, opened: false, lostAt: Date.now(), poll: null, polled: false, stopped: false, resyncing: false, pong: null, timer: null };

  function showConnection(kind) {
    const shown = { connecting: ["connecting", words.connecting], live: ["live", words.live], lost: ["lost", words.reconnecting], polling: ["live", words.polling], offline: ["lost", words.offline], ended: ["ended", words.ended] }[kind];
    const box = document.querySelector("[data-connection]");
    const text = box.querySelector("[data-connection-text]");
    box.dataset.connection = shown[0];
    if (text.textContent !== shown[1]) text.textContent = shown[1];
  }

  const isLive = () => link.socket?.readyState === WebSocket.OPEN;

  function connect() {
    clearTimeout(link.timer);
    if (link.stopped || (link.socket && link.socket.readyState <= WebSocket.OPEN)) return;
    const address = new URL(data.socket, location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(address);
    let heard = false;
    link.socket = socket;
    socket.addEventListener("open", () => {
      if (link.socket !== socket) return;
      link.resyncing = false;
      send({ type: "resync", after: state.seq });
      flushOutbox();
    });
    socket.addEventListener("message", (event) => {
      if (link.socket !== socket) return;
      let frame;
      try {
        frame = JSON.parse(event.data);
      } catch {
        return; // not one of ours
      }
      if (!heard) { // opened is not enough: some proxies open a socket and let nothing through
        heard = true;
        link.tries = 0;
        link.opened = true;
        link.lostAt = null;
        stopPolling();
        showConnection("live");
        refreshNotes();
      }
      receive(frame);
    });
    socket.addEventListener("close", (event) => lost(socket, event.code));
  }

  /* The socket is closed, or we give it up: on a dead network a browser takes a minute to say so. */
  function lost(socket, code) {
    if (link.socket !== socket) return;
    link.socket = null;
    socket.close();
    clearTimeout(link.pong);
    link.pong = null;
    link.lostAt ??= Date.now();
    if (state.ended) {
      link.stopped = true;
      showConnection("ended");
      return;
    }
    if (code === TOO_LARGE) giveUp(words.tooLong);
    if (code === TOO_MANY) link.tries = 6;
    else if (code >= 4400 && code < 4500) return reloadOnce(); // not our seat any more: the server says what instead
    if (!link.poll) showConnection(link.opened ? "lost" : "connecting");
    refreshNotes();
    retry();
  }

  function retry() {
    const wait = Math.min(10_000, 200 * 2 ** link.tries) * (0.5 + Math.random() / 2);
    link.tries += 1;
    link.timer = setTimeout(connect, wait);
  }

  function retryNow() {
    if (link.stopped || isLive()) return;
    link.tries = 0;
    connect();
  }

  function send(frame) {
    if (isLive()) {
      link.socket.send(JSON.stringify(frame));
      return true;
    }
    if (link.poll && frame.type !== "typing" && frame.type !== "ping") {
      post(frame);
      return true;
    }
    return false;
  }

  function ping() {
    if (!isLive() || link.pong) return;
    const socket = link.socket;
    send({ type: "ping" });
    link.pong = setTimeout(() => lost(socket), PONG_MS);
  }
  setInterval(ping, PING_MS);

  setInterval(() => {
    const lostFor = link.lostAt === null ? 0 : Date.now() - link.lostAt;
    if (!link.stopped && !link.poll && lostFor > POLL_AFTER_MS) startPolling();
  }, 1_000);

  function startPolling() {
    const cycle = async () => {
      try {
        const answer = await fetch(`${data.view}?after=${state.seq}`, { headers: { Accept: "application/json" }, cache: "no-store" });
        if (!answer.ok) throw new Error(String(answer.status));
        receive(await answer.json());
        link.polled = Boolean(link.poll);
        if (link.poll) showConnection(state.ended ? "ended" : "polling");
        flushOutbox();
      } catch {
        link.polled = false;
        if (link.poll) showConnection("offline");
      }
      refreshNotes();
      if (state.ended && !outbox.length) stopPolling();
      if (link.poll) link.poll = setTimeout(cycle, POLL_MS);
    };
    link.poll = setTimeout(cycle, 0);
  }

  function stopPolling() {
    clearTimeout(link.poll);
    link.poll = null;
    link.polled = false;
  }

  async function post(frame) {
    const token = document.querySelector("[data-csrf] input[name=csrfmiddlewaretoken]").value;
    try {
      const answer = await fetch(data.act, { method: "POST", headers: { "Content-Type": "application/json", "X-CSRFToken": token }, body: JSON.stringify(frame) });
      const type = answer.headers.get("Content-Type") || "";
      if (type.includes("application/json")) [].concat(await answer.json()).forEach(receive);
    } catch {
      // The act is still in the outbox and goes out with the next successful poll.
    }
  }

  function reloadOnce() {
    const key = `parley-reload-${data.room}`;
    const last = recall(sessionStorage, key, 0);
    if (Date.now() - last < 5_000) {
      link.stopped = true;
      showConnection("offline");
      return;
    }
    remember(sessionStorage, key, Date.now());
    location.reload();
  }

  // --- Outbox -----------------------------------------------------------------------------------

  const OUTBOX = `parley-outbox-${data.room}`;
  let outbox = recall(sessionStorage, OUTBOX, []);

  function act(b, action) {
    if (outbox.some((entry) => entry.thread === b)) return false; // a double click is one move
    const frame = { type: "act", client_move_id: moveId(), seen: state.seq, action };
    outbox.push({ thread: b, frame });
    remember(sessionStorage, OUTBOX, outbox);
    refusal(b, "");
    send(frame);
    refreshComposers();
    setTimeout(refreshNotes, 500);
    return true;
  }

  function flushOutbox() {
    for (const entry of outbox) send(entry.frame);
  }

  function settle(id) {
    const entry = outbox.find((one) => one.frame.client_move_id === id);
    outbox = outbox.filter((one) => one !== entry);
    remember(sessionStorage, OUTBOX, outbox.length ? outbox : null);
    return entry;
  }

  function acknowledged(frame) {
    const entry = settle(frame.client_move_id);
    if (!entry) return;
    clearSent(entry);
    if (frame.seq > state.seq) resync(); // the view that shows our move did not come
    refreshComposers();
    refreshNotes();
  }

  function refused(frame) {
    const entry = settle(frame.client_move_id);
    if (!entry) return;
    if (sections.has(entry.thread)) refusal(entry.thread, frame.sentence);
    else alertRoom(frame.sentence);
    closeConfirm();
    refreshComposers();
    refreshNotes();
  }

  /* An answer to no move in particular: too fast is tried again, unreadable is given up. */
  function failed(frame) {
    if (frame.code === "too_many" && outbox.length) setTimeout(flushOutbox, 1_500);
    else if (frame.code === "bad_frame" && outbox.length) giveUp(frame.sentence);
    else alertRoom(frame.sentence, { mild: frame.code === "agent_waits" });
  }

  function giveUp(sentence) {
    for (const { frame } of [...outbox]) refused({ client_move_id: frame.client_move_id, sentence });
  }

  function clearSent({ thread, frame }) {
    const talk = part(thread, "talk");
    const price = part(thread, "price-input");
    if (!talk) return;
    const { type } = frame.action;
    if (type !== "say" && type !== "make_offer") return;
    if (written(talk.value) === (frame.action.talk ?? "")) talk.value = "";
    if (price.value.trim() === (frame.action.price ?? "")) price.value = "";
    dismissProposal(thread);
    if (!price.value) {
      asked.get(thread).preview = 0; // its answer may still be on the way
      showPreview(thread, "", false);
      drawPreview(null);
    }
    keepDraft(thread);
    refreshSend(thread);
  }

  // --- Frames from the server -------------------------------------------------------------------

  function receive(frame) {
    switch (frame.type) {
      case "view": return view(frame);
      case "ack": return acknowledged(frame);
      case "refused": return refused(frame);
      case "preview": return previewed(frame);
      case "price_read": return priceRead(frame);
      case "typing": return typing(frame.thread);
      case "error": return failed(frame);
      case "reload": return reloadOnce();
      case "pong":
        clearTimeout(link.pong);
        link.pong = null;
    }
  }

  function resync() {
    if (!link.resyncing) link.resyncing = send({ type: "resync", after: state.seq });
  }

  function view(frame) {
    if (frame.after > state.seq) {
      resync();
      return;
    }
    link.resyncing = false;
    if (frame.seq < state.seq) return; // overtaken by a newer one
    const fresh = frame.items.filter((item) => item.seq > state.seq).map(append);
    const answered = fresh.includes("them");
    if (answered) noticePasses();
    state.seq = frame.seq;
    for (const [id, html] of Object.entries(frame.panels)) replacePanel(id, html);
    if (frame.server_time) state.clockOffset = frame.server_time - Date.now();
    state.deadline = frame.deadline_at;
    state.awaiting = new Set(frame.awaiting);
    state.waiting = document.getElementById("panel-waiting").childElementCount > 0;
    const turnCame = frame.my_turn && (!state.myTurn || answered); // an answer may be there with our own move
    state.myTurn = frame.my_turn;
    if (turnCame && !frame.ended) beep();
    const endCame = frame.ended && !state.ended;
    state.ended = frame.ended;
    refreshTabs();
    refreshComposers();
    refreshNotes();
    refreshTitle();
    tick();
    if (endCame) finish();
    else if (fresh.some((side) => side !== "system")) goAlong();
  }

  /* On a phone the foot of the only conversation lies over its log: the page moves on until the newest words are seen. */
  function goAlong() {
    if (several || !narrow.matches) return;
    const section = sections.get(data.threads[0]);
    const log = section.querySelector("[role=log]").getBoundingClientRect();
    const covered = log.bottom - section.querySelector(".thread__foot").getBoundingClientRect().top;
    if (covered > 4 && log.top < innerHeight) scrollBy({ top: covered, behavior: calm.matches ? "auto" : "smooth" });
  }

  /* Puts an event into its log; returns whose it was: "you", "them" or "system". */
  function append(item) {
    let side = "system";
    const logs = item.thread ? [item.thread] : data.threads;
    for (const b of logs) {
      const log = document.getElementById(`log-${b}`);
      if (!log || log.querySelector(`[data-seq="${item.seq}"]`)) continue;
      const made = document.createElement("template");
      made.innerHTML = item.html;
      const entry = made.content.firstElementChild;
      if (!entry) continue;
      side = entry.dataset.side;
      const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
      entry.classList.add("event--fresh");
      log.querySelector("[data-log-items]").append(entry);
      if (atEnd || entry.classList.contains("event--you")) scrollToEnd(log);
      hideTyping(b);
      if (several && b !== state.current && !entry.classList.contains("event--you")) tab(b)?.setAttribute("data-new", "");
    }
    return side;
  }

  const scrollToEnd = (log) => { log.scrollTop = log.scrollHeight; };

  /* A log that shows its end keeps showing it when the offers under it grow. */
  function keepEnd(log) {
    let atEnd = true;
    let height = log.clientHeight;
    log.addEventListener("scroll", () => {
      if (log.clientHeight === height) atEnd = log.scrollHeight - log.scrollTop - height < 40; // else we were resized, not scrolled
    }, { passive: true });
    new ResizeObserver(() => {
      height = log.clientHeight;
      if (atEnd) scrollToEnd(log);
    }).observe(log);
  }

  function places(panel) {
    const found = new Map();
    panel.querySelectorAll(".price-line").forEach((line, index) => {
      for (const mark of line.querySelectorAll("[data-mark]")) found.set(`${index} ${mark.dataset.mark}`, parseFloat(mark.dataset.x));
    });
    return found;
  }

  /* An offer that moved is shown moving: each mark starts where it stood before. */
  function travel(panel, before) {
    if (calm.matches || !before.size) return;
    panel.querySelectorAll(".price-line").forEach((line, index) => {
      const width = line.clientWidth;
      for (const mark of line.querySelectorAll("[data-mark]")) {
        const old = before.get(`${index} ${mark.dataset.mark}`);
        if (old === undefined) {
          mark.animate([{ opacity: 0 }, { opacity: 1 }], { duration: 300 });
          continue;
        }
        const shift = ((old - parseFloat(mark.dataset.x)) / 100) * width;
        if (Math.abs(shift) > 1) mark.animate([{ transform: `translateX(${shift}px)` }, { transform: "none" }], { duration: 450, easing: "cubic-bezier(0.2, 0.7, 0.2, 1)" });
      }
    });
  }

  function replacePanel(id, html) {
    const panel = document.getElementById(id);
    if (!panel) return;
    const asking = confirmIn(panel);
    const held = panel.contains(document.activeElement) ? handleOf(document.activeElement) : null;
    if (asking) asking.box.remove();
    if (id === "panel-card") document.querySelector("[data-preview-mark]")?.remove();
    const made = document.createElement("template");
    made.innerHTML = html;
    if (made.innerHTML !== panel.innerHTML) {
      const before = places(panel);
      panel.replaceChildren(made.content);
      travel(panel, before);
    }
    if (id === "panel-card") {
      drawPreview(previewMark);
      closeSoldOut();
    }
    if (asking) reopenConfirm(panel, asking);
    if (held && !panel.contains(document.activeElement)) focusAgain(panel, held);
  }

  /* Names a control inside a panel so that its successor can be found. */
  function handleOf(element) {
    if (element.closest("[data-confirm]")) return element.hasAttribute("data-confirm-accept") ? "[data-confirm-accept]" : "[data-confirm-cancel]";
    for (const name of ["data-accept", "data-reject", "data-copy", "id"]) {
      if (element.hasAttribute(name)) return `[${name}="${CSS.escape(element.getAttribute(name))}"]`;
    }
    return ":not(*)";
  }

  function focusAgain(panel, handle) {
    const again = panel.querySelector(handle);
    const section = panel.closest("[data-thread-section]");
    (again ?? section?.querySelector("[role=log]") ?? document.getElementById("main")).focus({ preventScroll: true });
  }

  // --- Accepting, rejecting, leaving --------------------------------------------------------------

  let confirm = null; // { box, thread, offer, since }

  function openConfirm(entry) {
    closeConfirm();
    const section = entry.closest("[data-thread-section]");
    const box = document.getElementById("confirm-template").content.firstElementChild.cloneNode(true);
    const loses = entry.hasAttribute("data-loses");
    box.toggleAttribute("data-loss", loses);
    box.querySelector("[data-confirm-text]").textContent = [loses ? words.askLoss : "", entry.dataset.sentence, words.ask].filter(Boolean).join(" ");
    box.querySelector("[data-confirm-accept]").textContent = words.askButton.replace("%s", entry.dataset.price);
    confirm = { box, thread: Number(section.dataset.threadSection), offer: Number(entry.dataset.offer), since: performance.now() };
    entry.classList.add("offer--asking");
    entry.append(box);
    const button = box.querySelector("[data-confirm-accept]");
    button.focus({ preventScroll: true });
    box.scrollIntoView({ block: "nearest", behavior: calm.matches ? "auto" : "smooth" });
  }

  function closeConfirm({ focus = false } = {}) {
    if (!confirm) return;
    const entry = confirm.box.closest("[data-offer]");
    confirm.box.remove();
    confirm = null;
    entry?.classList.remove("offer--asking");
    if (focus) entry?.querySelector("[data-accept]")?.focus();
  }

  const confirmIn = (panel) => (confirm && panel.contains(confirm.box) ? confirm : null);

  function reopenConfirm(panel, asking) {
    const entry = panel.querySelector(`[data-offer="${asking.offer}"]`);
    if (!entry || !entry.querySelector("[data-accept]")) {
      confirm = null;
      return;
    }
    entry.classList.add("offer--asking");
    entry.append(asking.box);
  }

  function acceptConfirmed() {
    if (!confirm || performance.now() - confirm.since < CONFIRM_GUARD_MS) return;
    const { thread, offer } = confirm;
    closeConfirm();
    act(thread, { type: "accept_offer", ...buyerField(thread), offer_id: offer });
    document.getElementById(`log-${thread}`).focus({ preventScroll: true });
  }

  function reject(button) {
    const b = Number(button.closest("[data-thread-section]").dataset.threadSection);
    act(b, { type: "reject_offer", ...buyerField(b), offer_id: Number(button.dataset.reject) });
  }

  function askToLeave(yes) {
    const box = document.querySelector("[data-leave-confirm]");
    box.hidden = !yes;
    (yes ? box.querySelector("[data-confirm-leave]") : document.querySelector("[data-leave]")).focus();
  }

  document.addEventListener("click", (event) => {
    const target = event.target.closest("button, a");
    if (!target) return;
    const has = (name) => target.hasAttribute(name);
    if (has("data-accept")) {
      if (consentGiven(target)) openConfirm(target.closest("[data-offer]"));
    } else if (has("data-reject")) {
      if (consentGiven(target)) reject(target);
    } else if (has("data-confirm-accept")) acceptConfirmed();
    else if (has("data-confirm-cancel")) closeConfirm({ focus: true });
    else if (has("data-leave")) askToLeave(true);
    else if (has("data-cancel-leave")) askToLeave(false);
    else if (has("data-confirm-leave")) {
      document.querySelector("[data-leave-confirm]").hidden = true;
      act(0, { type: "leave" });
    } else if (has("data-help")) document.querySelector("[data-help-dialog]").showModal();
    else if (has("data-sound")) toggleSound();
    else if (has("data-tab")) {
      event.preventDefault();
      goTo(Number(target.dataset.tab));
    }
  });

  function consentGiven(control) {
    if (state.consent) return true;
    const b = Number(control.closest("[data-thread-section]").dataset.threadSection);
    refusal(b, words.lockedConsent);
    document.querySelector("#panel-consent button")?.focus();
    return false;
  }

  // --- Composers --------------------------------------------------------------------------------

  const DRAFTS = `parley-drafts-${data.room}`;
  const drafts = recall(sessionStorage, DRAFTS, {});
  const asked = new Map(); // thread -> { preview: id, read: id, text, proposal, dismissed, resolve }
  let nextId = 1;
  for (const b of data.threads) asked.set(b, { preview: 0, read: 0, text: "", proposal: null, dismissed: null, resolve: null });

  function keepDraft(b) {
    const talk = part(b, "talk").value;
    const price = part(b, "price-input").value;
    if (talk || price) drafts[b] = { talk, price };
    else delete drafts[b];
    remember(sessionStorage, DRAFTS, Object.keys(drafts).length ? drafts : null);
  }

  const refusal = (b, sentence) => {
    const box = part(b, "refusal");
    if (box) box.textContent = sentence || "";
    if (sentence) showPreview(b, part(b, "preview").textContent, part(b, "preview").hasAttribute("data-loss"));
  };

  function threadStatus(b) {
    return document.querySelector(`#panel-thread-${b} [data-thread-status]`)?.dataset.threadStatus ?? "idle";
  }

  const pending = (b) => outbox.some((entry) => entry.thread === b || entry.thread === 0);

  function refreshComposers() {
    for (const b of data.threads) {
      const section = sections.get(b);
      const closed = state.ended || ["bought", "left", "over"].includes(threadStatus(b));
      section.querySelector(".thread__composer").hidden = closed;
      part(b, "composer-fields").disabled = closed || !state.consent;
      refreshSend(b);
    }
    document.querySelector("[data-leave]").hidden = state.ended || state.waiting;
  }

  function refreshSend(b) {
    const button = part(b, "send");
    const text = part(b, "send-text");
    button.disabled = pending(b) || !state.awaiting.has(b);
    text.textContent = part(b, "price-input").value.trim() ? text.dataset.textOffer : text.dataset.textSay;
  }

  function refreshNotes() {
    for (const b of data.threads) {
      const note = part(b, "note");
      let sentence = "";
      if (state.ended) sentence = "";
      else if (!state.consent) sentence = words.lockedConsent;
      else if (pending(b)) sentence = isLive() || link.polled ? words.sending : words.kept;
      else if (state.waiting && !state.awaiting.has(b)) sentence = words.lockedWaiting;
      else if (!state.awaiting.has(b)) sentence = words.lockedTurn;
      if (note.textContent !== sentence) note.textContent = sentence;
    }
  }

  const product = (b) => Number(part(b, "product")?.value ?? 0);

  const askPreview = debounced(150, (b) => {
    const price = part(b, "price-input").value.trim();
    const mine = asked.get(b);
    mine.preview = nextId++;
    if (!price) {
      showPreview(b, "", false);
      drawPreview(null);
      return;
    }
    send({ type: "preview", id: mine.preview, ...buyerField(b), product: product(b), price });
  });

  function previewed(frame) {
    for (const [b, mine] of asked) {
      if (mine.preview !== frame.id) continue;
      showPreview(b, frame.sentence, !frame.ok || frame.surplus_cents < 0);
      drawPreview(frame.ok ? { product: product(b), surplus: frame.surplus_cents } : null);
    }
  }

  /* Draws the price being typed on the card's line: the surplus away from your own value. */
  let previewMark = null;
  function drawPreview(shown) {
    previewMark = shown;
    document.querySelector("[data-preview-mark]")?.remove();
    if (!shown || shown.surplus === null) return;
    const line = document.querySelector(`#panel-card [data-product-card="${shown.product}"] [data-span]`);
    const value = line?.querySelector('[data-mark="reservation"]');
    if (!value) return;
    const away = ((isSeller ? 1 : -1) * shown.surplus * 100) / Number(line.dataset.span);
    const x = Math.max(0, Math.min(100, parseFloat(value.dataset.x) + away));
    const made = document.createElement("template");
    const shape = isSeller ? '<rect class="pl-shape pl-offer" x="-6" y="-6" width="12" height="12"/>' : '<circle class="pl-shape pl-offer" r="6.75"/>';
    made.innerHTML = `<svg><g class="pl-mark pl-mark--preview pl-mark--${data.role}" data-preview-mark><svg x="${x}%" y="${Number(line.dataset.axisY)}" overflow="visible">${shape}</svg></g></svg>`;
    line.append(made.content.firstElementChild.firstElementChild);
  }

  /* What the card strikes out can no longer be offered. */
  function closeSoldOut() {
    for (const gone of document.querySelectorAll("#panel-card .card__product--gone")) {
      for (const option of document.querySelectorAll(`[data-product] option[value="${gone.dataset.productCard}"]`)) {
        option.disabled = true;
        if (option.selected) option.selected = false;
      }
    }
    for (const choice of document.querySelectorAll("select[data-product]")) {
      if (choice.selectedOptions[0] && !choice.selectedOptions[0].disabled) continue;
      const open = [...choice.options].find((option) => !option.disabled);
      if (open) choice.value = open.value;
    }
    data.threads.forEach(showExample);
  }

  /* A price that would gain something, of the product that is chosen. */
  function showExample(b) {
    const chosen = part(b, "product")?.selectedOptions[0];
    if (chosen?.dataset.example) part(b, "price-input").placeholder = chosen.dataset.example;
  }

  function showPreview(b, sentence, loss) {
    const box = part(b, "preview");
    const said = sentence !== "" && part(b, "refusal").textContent === sentence; // once is enough
    box.textContent = said ? "" : sentence;
    box.toggleAttribute("data-loss", loss && !said);
  }

  /* Asks whether the talk names a price; resolves with the server's proposal or null. */
  function readPrice(b) {
    const mine = asked.get(b);
    const text = written(part(b, "talk").value);
    mine.resolve?.(null);
    mine.text = text;
    mine.proposal = null;
    mine.read = nextId++;
    if (!/\d/.test(text) || text === mine.dismissed) {
      hideProposal(b);
      return Promise.resolve(null);
    }
    return new Promise((resolve) => {
      mine.resolve = resolve;
      setTimeout(() => resolve(null), READ_WAIT_MS);
      if (!send({ type: "read_price", id: mine.read, ...buyerField(b), text: written(text.slice(0, READ_CHARS)) })) resolve(null);
    });
  }

  const readPriceSoon = debounced(400, readPrice);

  function priceRead(frame) {
    for (const [b, mine] of asked) {
      if (mine.read !== frame.id) continue;
      mine.proposal = frame.price === null ? null : { price: frame.price, label: frame.label };
      if (mine.proposal && !part(b, "price-input").value.trim()) showProposal(b, false);
      else hideProposal(b);
      mine.resolve?.(mine.proposal);
      mine.resolve = null;
    }
  }

  function showProposal(b, holding) {
    const { proposal } = asked.get(b);
    part(b, "proposal").hidden = false;
    part(b, "proposal-text").textContent = holding ? words.hold : "";
    part(b, "proposal-offer").textContent = proposal.label || words.offerIt;
    part(b, "proposal-talk").hidden = !holding;
    if (holding) part(b, "proposal-offer").focus();
  }

  function hideProposal(b) {
    part(b, "proposal").hidden = true;
  }

  function dismissProposal(b) {
    const mine = asked.get(b);
    mine.proposal = null;
    mine.dismissed = null;
    hideProposal(b);
  }

  async function submit(b, { talkOnly = false } = {}) {
    const typed = part(b, "talk").value;
    const talk = written(typed);
    const price = part(b, "price-input").value.trim();
    refusal(b, "");
    if (!talk && !price) return refusal(b, words.empty);
    if ([...talk].length > Number(part(b, "talk").dataset.limit)) return refusal(b, words.tooLong); // a field that cuts what is pasted loses it silently
    if (!state.consent) return refusal(b, words.lockedConsent);
    if (pending(b)) return;
    if (!state.awaiting.has(b)) return refusal(b, state.waiting ? words.lockedWaiting : words.lockedTurn);
    if (talk && !price && !talkOnly) {
      const mine = asked.get(b);
      const proposal = mine.text === talk && mine.proposal ? mine.proposal : await readPrice(b);
      if (part(b, "talk").value !== typed) return; // changed while we asked
      if (proposal) return showProposal(b, true);
    }
    if (price) act(b, { type: "make_offer", ...buyerField(b), product: product(b), price, ...(talk ? { talk } : {}) });
    else act(b, { type: "say", ...buyerField(b), talk });
  }

  const lastTyping = new Map();
  function tellTyping(b) {
    const now = Date.now();
    if (now - (lastTyping.get(b) ?? 0) < TYPING_EVERY_MS || !isLive()) return;
    lastTyping.set(b, now);
    send({ type: "typing", buyer: isSeller ? b : null });
  }

  const typingTimers = new Map();
  function typing(b) {
    const sign = document.getElementById(`typing-${b}`);
    if (!sign || state.ended) return;
    sign.hidden = false;
    clearTimeout(typingTimers.get(b));
    typingTimers.set(b, setTimeout(() => hideTyping(b), TYPING_SHOWN_MS));
  }

  function hideTyping(b) {
    const sign = document.getElementById(`typing-${b}`);
    if (sign) sign.hidden = true;
  }

  function prepareComposer(b) {
    const form = document.getElementById(`composer-${b}`);
    const talk = part(b, "talk");
    const price = part(b, "price-input");
    if (drafts[b]) {
      talk.value = drafts[b].talk;
      price.value = drafts[b].price;
      if (price.value) askPreview(b);
    }
    talk.addEventListener("input", () => {
      refusal(b, "");
      keepDraft(b);
      tellTyping(b);
      if (!/\d/.test(talk.value)) hideProposal(b);
      readPriceSoon(b);
    });
    price.addEventListener("input", () => {
      refusal(b, "");
      keepDraft(b);
      tellTyping(b);
      hideProposal(b);
      refreshSend(b);
      askPreview(b);
    });
    part(b, "product")?.addEventListener("change", () => {
      showExample(b);
      askPreview(b);
    });
    talk.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.altKey) return;
      event.preventDefault();
      submit(b);
    });
    price.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault(); // a disabled button would swallow it silently; submit says why
      submit(b);
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      submit(b);
    });
    const apart = (action) => () => {
      refusal(b, "");
      if (!state.consent) return refusal(b, words.lockedConsent);
      if (!state.awaiting.has(b)) return refusal(b, state.waiting ? words.lockedWaiting : words.lockedTurn);
      act(b, action());
    };
    form.querySelector("[data-search-price]")?.addEventListener("click", apart(() => ({ type: "search_price", ...buyerField(b), product: product(b) })));
    for (const button of form.querySelectorAll("[data-wait]")) {
      button.addEventListener("click", apart(() => ({ type: "wait", ...buyerField(b), for_ms: Number(button.dataset.wait) })));
    }
    part(b, "proposal-offer").addEventListener("click", () => {
      const { proposal } = asked.get(b);
      if (!proposal) return;
      price.value = proposal.price;
      hideProposal(b);
      keepDraft(b);
      refreshSend(b);
      askPreview(b);
      (part(b, "send").disabled ? price : part(b, "send")).focus();
    });
    part(b, "proposal-talk").addEventListener("click", () => {
      asked.get(b).dismissed = written(talk.value);
      hideProposal(b);
      talk.focus();
      submit(b, { talkOnly: true });
    });
  }

  // --- Consent ----------------------------------------------------------------------------------

  document.body.addEventListener("htmx:afterSwap", (event) => {
    const panel = event.target.closest?.("#panel-consent");
    if (!panel) return;
    const chosen = panel.querySelector("[data-consent]")?.dataset.consent ?? "";
    const first = !state.consent && chosen;
    state.consent = chosen;
    alertRoom("");
    for (const b of data.threads) refusal(b, "");
    refreshComposers();
    refreshNotes();
    if (first) part(state.current, "talk").focus({ preventScroll: narrow.matches === false });
    else panel.querySelector("summary")?.focus();
  });
  for (const name of ["htmx:responseError", "htmx:sendError"]) {
    document.body.addEventListener(name, () => alertRoom(words.offline));
  }

  // --- Threads, tabs, keyboard ------------------------------------------------------------------

  const tab = (b) => document.querySelector(`[data-tab="${b}"]`);

  function refreshTabs() {
    for (const b of data.threads) {
      const link_ = tab(b);
      if (link_) link_.dataset.status = threadStatus(b);
    }
  }

  function setCurrent(b) {
    state.current = b;
    for (const one of data.threads) {
      if (one === b) tab(one)?.setAttribute("aria-current", "true");
      else tab(one)?.removeAttribute("aria-current");
    }
    tab(b)?.removeAttribute("data-new");
  }

  function goTo(b) {
    const section = sections.get(b);
    if (!section) return;
    setCurrent(b);
    section.scrollIntoView({ behavior: calm.matches ? "auto" : "smooth", block: "nearest", inline: "start" });
    const talk = part(b, "talk");
    (talk.disabled || section.querySelector(".thread__composer").hidden || part(b, "composer-fields").disabled ? section.querySelector("[role=log]") : talk).focus({ preventScroll: true });
  }

  document.addEventListener("focusin", (event) => {
    const section = event.target.closest("[data-thread-section]");
    if (section) setCurrent(Number(section.dataset.threadSection));
  });

  if (several) {
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting && narrow.matches) setCurrent(Number(entry.target.dataset.threadSection));
    }, { root: document.querySelector("[data-threads]"), threshold: 0.6 });
    for (const section of sections.values()) seen.observe(section);
  }

  function offerButton(name) {
    const order = [state.current, ...data.threads.filter((b) => b !== state.current)];
    for (const b of order) {
      const button = document.querySelector(`#panel-offers-${b} [data-${name}]`);
      if (button) return button;
    }
    return null;
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && confirm) {
      event.preventDefault();
      return closeConfirm({ focus: true });
    }
    if (event.key === "Escape" && !document.querySelector("[data-leave-confirm]").hidden) return askToLeave(false);
    const writing = event.target.closest("input, textarea, select");
    if (event.key === "?" && !writing && !event.altKey) return document.querySelector("[data-help-dialog]").showModal();
    if (!event.altKey || event.ctrlKey || event.metaKey || event.repeat) return;
    const digit = /^Digit([1-9])$/.exec(event.code);
    if (event.code === "KeyA") offerButton("accept")?.click();
    else if (event.code === "KeyR") offerButton("reject")?.click();
    else if (event.code === "KeyO") part(state.current, "price-input").focus();
    else if (digit && several) goTo(data.threads[Number(digit[1]) - 1]);
    else return;
    event.preventDefault();
  });

  // --- Clock, title, sound ----------------------------------------------------------------------

  function clockText(ms) {
    const seconds = Math.max(0, Math.ceil(ms / 1000));
    const pad = (number) => String(number).padStart(2, "0");
    const hours = Math.floor(seconds / 3600);
    const minutes = Math.floor((seconds % 3600) / 60);
    return hours ? `${hours}:${pad(minutes)}:${pad(seconds % 60)}` : `${minutes}:${pad(seconds % 60)}`;
  }

  function tick() {
    const now = Date.now() + state.clockOffset;
    const clock = document.querySelector("[data-clock]");
    clock.hidden = state.ended || !state.deadline;
    if (!clock.hidden) {
      const left = state.deadline - now;
      const text = clock.querySelector("[data-clock-text]");
      text.textContent = clockText(left);
      text.classList.toggle("clock--soon", left < 30_000);
    }
    for (const countdown of document.querySelectorAll("[data-countdown]")) countdown.textContent = clockText(Number(countdown.dataset.countdown) - now);
  }
  setInterval(tick, 1_000);

  function refreshTitle() {
    document.title = state.myTurn && !state.ended && document.hidden ? `(1) ${words.yourTurn} · ${title}` : title;
  }

  document.addEventListener("visibilitychange", () => {
    refreshTitle();
    if (document.hidden) return;
    retryNow();
    ping(); // a machine that slept may hold a socket that is long dead
  });
  addEventListener("online", retryNow);
  addEventListener("offline", () => { if (link.socket) lost(link.socket); });

  const SOUND = "parley-sound";
  let soundOn = recall(localStorageOrNothing(), SOUND, true);
  let audio = null;

  function localStorageOrNothing() {
    try {
      return localStorage;
    } catch {
      return { getItem: () => null, setItem: () => {}, removeItem: () => {} };
    }
  }

  function showSound() {
    document.querySelector("[data-sound]").setAttribute("aria-pressed", String(soundOn));
  }

  function toggleSound() {
    soundOn = !soundOn;
    remember(localStorageOrNothing(), SOUND, soundOn);
    showSound();
    if (soundOn) beep();
  }

  /* Browsers allow sound only after a gesture; the first one wakes the audio. */
  function wakeAudio() {
    if (!audio && window.AudioContext) audio = new AudioContext();
    audio?.resume();
  }
  for (const name of ["pointerdown", "keydown"]) addEventListener(name, wakeAudio, { once: true });

  function beep() {
    if (!soundOn || !audio || audio.state !== "running") return;
    [[523.25, 0], [659.25, 0.13]].forEach(([pitch, delay]) => {
      const at = audio.currentTime + delay;
      const tone = audio.createOscillator();
      const volume = audio.createGain();
      tone.frequency.value = pitch;
      volume.gain.setValueAtTime(0, at);
      volume.gain.linearRampToValueAtTime(0.08, at + 0.015);
      volume.gain.exponentialRampToValueAtTime(0.0001, at + 0.32);
      tone.connect(volume).connect(audio.destination);
      tone.start(at);
      tone.stop(at + 0.35);
    });
  }

  // --- Muting -----------------------------------------------------------------------------------

  /* Hides what the other side writes, in this room and browser; offers and answers stay in sight. */
  const MUTED = `parley-muted-${data.room}`;
  const muteBox = document.querySelector("[data-mute]");
  function showMuted(on) {
    room.classList.toggle("room--muted", on);
    if (muteBox) muteBox.checked = on;
  }
  muteBox?.addEventListener("change", () => {
    remember(sessionStorage, MUTED, muteBox.checked || null);
    showMuted(muteBox.checked);
  });
  showMuted(Boolean(recall(sessionStorage, MUTED, false)));

  // --- The end ----------------------------------------------------------------------------------

  async function finish() {
    closeConfirm();
    document.querySelector("[data-leave-confirm]").hidden = true;
    room.classList.add("room--ended");
    drawPreview(null);
    showConnection("ended");
    const panel = document.getElementById("panel-result");
    for (let attempt = 0; attempt < 6; attempt += 1) {
      try {
        const answer = await fetch(data.result, { headers: { "HX-Request": "true" }, cache: "no-store" });
        if (!answer.ok) throw new Error(String(answer.status));
        panel.innerHTML = await answer.text();
        panel.hidden = false;
        document.title = title;
        scrollTo({ top: 0, behavior: calm.matches ? "auto" : "smooth" });
        panel.focus({ preventScroll: true });
        return;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 400 * 2 ** attempt));
      }
    }
    alertRoom(words.resultFailed);
  }

  // --- Start ------------------------------------------------------------------------------------

  for (const b of data.threads) {
    prepareComposer(b);
    scrollToEnd(document.getElementById(`log-${b}`));
    keepEnd(document.getElementById(`log-${b}`));
  }
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  }
  if (several) setCurrent(state.current);
  if (narrow.matches && (several || document.querySelector(".card--many"))) document.querySelector("[data-card-fold]").open = false;
  showSound();
  closeSoldOut();
  refreshComposers();
  refreshNotes();
  tick();
  if (state.ended) {
    link.stopped = true;
    showConnection("ended");
  } else connect();
})();
