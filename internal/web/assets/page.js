// Keeps the page current: the agent sends what has changed, as it drew it.
"use strict";
(() => {
  const live = document.getElementById("live");
  const main = document.getElementById("main");
  // While the status stays, what has once taken up room keeps it: a number more or
  // less moves nothing below it.
  const replace = (id, html, keep) => {
    const at = document.getElementById(id);
    if (!at) return;
    const focused = at.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const height = keep ? at.offsetHeight : 0;
    at.innerHTML = html;
    at.style.minHeight = height > 0 ? `${height}px` : "";
    if (focused) at.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
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
  if (live && main && window.EventSource) follow();
})();
