// The site's two controls: dark or light, and the search, whose index is one file that is
// read when somebody begins to search. Without script the pages are whole.
(() => {
  const root = document.documentElement;
  const stored = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const theme = stored();
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* only for this page then */ }
  });

  const menu = document.querySelector(".menu");
  if (matchMedia("(max-width: 52rem)").matches) menu.open = false;

  const form = document.querySelector(".search");
  const input = form.querySelector("input");
  const found = document.getElementById("found");
  let index;
  const load = () => index ||= fetch(form.dataset.index).then((r) => r.json()).then((all) =>
    all.map((e) => ({ ...e, lt: plain(e.t), lh: plain(`${e.m} ${e.h}`), lx: e.x.toLowerCase() })));

  const plain = (text) => text.toLowerCase().replace(/_/g, " ").trim();
  const words = (text) => plain(text).split(/[^\p{L}\p{N}]+/u).filter((w) => w.length > 1);
  const small = new Set(["what", "does", "is", "it", "do", "how", "the", "an", "my", "for", "to", "of", "in", "which", "mean", "why", "are"]);

  // Every word must be in an entry, or begin one of it; headings count most, then titles, and whole words.
  function search(all, text) {
    const asked = words(text);
    const kept = asked.filter((w) => !small.has(w));
    const terms = kept.length ? kept : asked;
    const tests = terms.map((w) => [new RegExp(`(?<![\\p{L}\\p{N}])${w}s?(?![\\p{L}\\p{N}])`, "gu"), new RegExp(`(?<![\\p{L}\\p{N}])${w}`, "u")]);
    const scored = [];
    for (const e of all) {
      let sum = 0;
      for (const [whole, begun] of tests) {
        const within = (where, much, less) => where.search(whole) >= 0 ? much : begun.test(where) ? less : 0;
        const s = within(e.lh, 8, 5) + within(e.lt, 5, 3) + (Math.min((e.lx.match(whole) || []).length, 4) || within(e.lx, 0, 1));
        if (!s) { sum = 0; break; }
        sum += s;
      }
      if (sum) scored.push([sum + (e.lh === terms.join(" ") ? 20 : 0), e]);
    }
    return scored.sort((a, b) => b[0] - a[0]).slice(0, 12).map((s) => [s[1], terms]);
  }

  // excerpt is some words of a text with the one that was asked for among the first, marked.
  function excerpt(text, word) {
    const at = text.search(new RegExp(`(?<![\\p{L}\\p{N}])${word}`, "iu"));
    if (at < 0) return [text.slice(0, 160)];
    const from = at < 24 ? 0 : text.indexOf(" ", at - 24) + 1;
    const mark = document.createElement("mark");
    mark.textContent = text.slice(at, at + word.length);
    return [text.slice(from, at), mark, text.slice(at + word.length, from + 160)];
  }

  function show(results, text) {
    found.replaceChildren();
    for (const [e, terms] of results) {
      const li = document.createElement("li");
      const a = document.createElement("a");
      a.href = e.u;
      a.textContent = e.m || e.h ? `${e.m || e.h} · ${e.t}` : e.t;
      const line = document.createElement("small");
      line.append(...excerpt(e.x, terms[0]));
      a.append(line);
      li.append(a);
      found.append(li);
    }
    if (!results.length && text) {
      const li = document.createElement("li");
      li.textContent = "Nothing has these words.";
      found.append(li);
    }
    found.hidden = !text;
  }

  let last = 0;
  input.addEventListener("focus", load);
  input.addEventListener("input", async () => {
    const turn = ++last;
    const all = await load();
    if (turn === last) show(search(all, input.value), input.value.trim());
  });
  form.addEventListener("submit", (e) => { e.preventDefault(); found.querySelector("a")?.click(); });
  form.addEventListener("keydown", (e) => {
    if (e.key === "Escape") { found.hidden = true; input.focus(); return; }
    if (e.key !== "ArrowDown" && e.key !== "ArrowUp") return;
    const links = [...found.querySelectorAll("a")];
    const next = links.indexOf(document.activeElement) + (e.key === "ArrowDown" ? 1 : -1);
    (links[next] ?? input).focus();
    e.preventDefault();
  });
  document.addEventListener("click", (e) => { if (!form.contains(e.target)) found.hidden = true; });
  document.addEventListener("keydown", (e) => {
    if (e.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) { input.focus(); e.preventDefault(); }
  });
})();
