// toolfault: every page works without this file; it adds keys, copying, themes and looking again.
(() => {
  "use strict";
  const $ = (sel, root = document) => root.querySelector(sel);
  const $$ = (sel, root = document) => [...root.querySelectorAll(sel)];

  // Controls that need script are hidden in the markup and shown here, so none is ever dead.
  $$("[data-js]").forEach((el) => { el.hidden = false; });

  const toast = $("#toast");
  let timer;
  function say(text) {
    toast.textContent = text;
    toast.hidden = false;
    clearTimeout(timer);
    timer = setTimeout(() => { toast.hidden = true; }, 2000);
  }

  // Copy: data-copy holds the text itself, data-copy-from the id of the element to read.
  async function copy(text) {
    if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
    const area = document.createElement("textarea");   // plain http on an internal host
    area.value = text;
    area.className = "vh";
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-copy-from]");
    if (!button) return;
    const from = button.dataset.copyFrom;
    const source = from && $("#" + from);
    const text = !source ? button.dataset.copy
      : source.tagName === "PRE" ? source.textContent
      : source.innerText.trim();
    try { await copy(text); say("Copied"); } catch { say("Could not copy: select the text instead"); }
  });

  // Theme: system, light, dark.
  const order = ["system", "light", "dark"];
  const themeButton = $("#theme");
  function setTheme(name) {
    if (name === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    if (themeButton) themeButton.setAttribute("aria-label", `Colours: ${name}. Change`);
  }
  let theme = "system";
  try { theme = localStorage.getItem("toolfault-theme") || "system"; } catch { /* storage is off */ }
  setTheme(theme);
  themeButton?.addEventListener("click", () => {
    theme = order[(order.indexOf(theme) + 1) % order.length];
    try { localStorage.setItem("toolfault-theme", theme); } catch { /* storage is off */ }
    setTheme(theme);
    say(`Colours: ${theme}`);
  });

  // Keys: "/" search, "c" copy reference, j and k move in a list, Enter opens, Escape leaves a field.
  const rows = $$("[data-rows] tbody tr");
  let at = -1;
  function select(next) {
    rows[at]?.classList.remove("sel");
    at = Math.max(0, Math.min(rows.length - 1, next));
    rows[at].classList.add("sel");
    const link = $("a", rows[at]);
    link?.focus({ preventScroll: true });
    rows[at].scrollIntoView({ block: "nearest" });
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "Escape" && typing) return document.activeElement.blur();
    if (typing) return;
    if (event.key === "/") { event.preventDefault(); const box = $("#q"); box.focus(); box.select(); }
    if (event.key === "c") $("#copy-ref")?.click();
    if (rows.length && (event.key === "j" || event.key === "k")) select(at + (event.key === "j" ? 1 : -1));
  });

  // New errors never move the list: they wait behind a link until the reader wants them.
  const live = $("#live");
  let watching;
  const keys = (root) => $$("[data-rows] tbody tr", root).map((row) => $("a", row)?.href);
  async function watch() {
    const answer = await fetch(location.href);
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const known = new Set(keys(document));
    const fresh = keys(page).filter((key) => !known.has(key)).length;
    $("#fresh").textContent = `${fresh} new, show`;
    $("#fresh").hidden = !fresh;
  }
  live?.addEventListener("click", () => {
    clearInterval(watching);
    const on = live.getAttribute("aria-pressed") !== "true";
    live.setAttribute("aria-pressed", on);
    if (on) { watching = setInterval(() => watch().catch(() => {}), 5000); say("New ones are announced here"); }
  });

  // A page that waits for a record looks again by itself.
  const again = Number(document.body.dataset.again);
  if (again) setTimeout(() => { location.reload(); }, again * 1000);
})();
