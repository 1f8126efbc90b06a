// Keeps the page current: the agent sends what has changed, as it drew it.
"use strict";
(() => {
  const live = document.getElementById("live");
  const main = document.getElementById("main");
  const replace = (id, html) => {
    const at = document.getElementById(id);
    if (!at) return;
    const focused = at.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    at.innerHTML = html;
    if (focused) at.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  };
  const follow = () => {
    const stream = new EventSource(live.dataset.stream);
    const take = (event) => {
      const update = JSON.parse(event.data);
      document.title = update.title;
      live.textContent = "Live";
      if (update.main !== undefined) replace("main", update.main);
      for (const [id, html] of Object.entries(update.parts || {})) replace(id, html);
      for (const [id, status] of Object.entries(update.statuses || {})) {
        const at = document.getElementById(id);
        if (at && at.tagName === "ARTICLE") at.className = status;
      }
    };
    stream.addEventListener("update", take);
    stream.addEventListener("error", () => {
      live.textContent = "Not live: connecting again";
      if (stream.readyState === EventSource.CLOSED) setTimeout(follow, 5000);
    });
    window.addEventListener("pagehide", () => stream.close(), { once: true });
  };
  if (live && main && window.EventSource) follow();
})();
