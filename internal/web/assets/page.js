// Keeps the page current: the agent sends what has changed, as it drew it.
"use strict";
(() => {
  const live = document.getElementById("live");
  const main = document.getElementById("main");
  document.documentElement.classList.add("js");
  // While the status stays, what has once taken up room keeps it: a number more or
  // less moves nothing below it.
  const replace = (id, html, keep) => {
    const at = document.getElementById(id);
    if (!at) return;
    const active = at.contains(document.activeElement) ? document.activeElement : null;
    const name = ["href", "data-copy"].find((one) => active?.hasAttribute(one));
    const focused = name && `[${name}="${CSS.escape(active.getAttribute(name))}"]`;
    const height = keep ? at.offsetHeight : 0;
    at.innerHTML = html;
    at.style.minHeight = height > 0 ? `${height}px` : "";
    if (focused) at.querySelector(focused)?.focus({ preventScroll: true });
  };
  const follow = () => {
    const stream = new EventSource(live.dataset.stream);
    const take = (event) => {
      const update = JSON.parse(event.data);
      document.title = update.title;
      live.textContent = "Live";
      if (update.main !== undefined) replace("main", update.main);
      const changed = new Set();
      for (const [id, status] of Object.entries(update.statuses || {})) {
        const at = document.getElementById(id);
        if (!at || at.tagName !== "ARTICLE" || at.className === status) continue;
        at.className = status;
        changed.add(id);
      }
      for (const [id, html] of Object.entries(update.parts || {})) replace(id, html, !changed.has(id.slice(0, -2)));
    };
    stream.addEventListener("update", take);
    stream.addEventListener("error", () => {
      live.textContent = "Not live: connecting again";
      if (stream.readyState === EventSource.CLOSED) setTimeout(follow, 5000);
    });
    window.addEventListener("pagehide", () => stream.close(), { once: true });
  };
  window.addEventListener("resize", () => {
    for (const box of main.querySelectorAll("[style]")) box.removeAttribute("style");
  });
  // A command or a setting is copied; where the browser has no clipboard for the page (it
  // is not encrypted) by its selection.
  const copy = async (button) => {
    const text = button.dataset.copy;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const range = document.createRange();
      range.selectNodeContents(button.parentElement.querySelector(".copied"));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      document.execCommand("copy");
    }
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.(".copy");
    if (button) copy(button);
  });
  // The crosshair: one moment in all charts of a listener.
  const cross = (event) => {
    const plot = event.target.closest?.("article svg[data-values]");
    for (const line of document.querySelectorAll(".cross")) line.remove();
    for (const at of document.querySelectorAll(".figure .at")) at.textContent = "";
    if (!plot) return;
    const box = plot.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), .9999);
    for (const one of plot.closest("article").querySelectorAll("svg[data-values]")) {
      const values = one.dataset.values.split(",");
      const i = Math.floor(share * values.length);
      const seconds = Number(one.dataset.end) - (values.length - 1 - i) * Number(one.dataset.width);
      const clock = new Date(seconds * 1000).toISOString().slice(11, 19);
      const at = (value) => value === "" ? "not known" : Number(value).toLocaleString("en");
      const series = (one.dataset.series || "").split(";").filter(Boolean).map((text) => text.split(":"));
      const said = series.map(([name, list]) => `${name} ${at(list.split(",")[i])}`).join(", ") || at(values[i]);
      one.closest(".figure").querySelector(".at").textContent = `${clock} UTC: ${said}`;
      const line = document.createElement("div");
      line.className = "cross";
      line.style.left = `${100 * share}%`;
      one.parentElement.append(line);
    }
  };
  document.addEventListener("pointermove", cross);
  document.addEventListener("pointerdown", cross);
  if (live && main && window.EventSource) follow();
})();
