// A dashboard as Grafana lays it out: its variables, and the grid of its panels. When all is drawn
// it tells the server what each panel says, and marks the page.
import '@fontsource/inter/400.css';
import '@fontsource/inter/500.css';
import { useLayoutEffect } from 'react';
import { createRoot } from 'react-dom/client';
import { createTheme } from '@grafana/data';
import { GlobalStyles, Icon, PanelChrome, ThemeContext, useTheme2 } from '@grafana/ui';
import { alerts, frames, range, variables } from './prometheus.js';
import { Panel, prepared } from './panels.jsx';

const asked = new URLSearchParams(location.search);
const dark = matchMedia('(prefers-color-scheme: dark)').matches;
const [cell, gap, margin, columns, phone] = [30, 8, 16, 24, 769]; // pixels of Grafana's grid; below the last one panel a row

// laid are the panels of a dashboard with their places, those of folded rows left out.
function laid(dashboard, width) {
  const out = [];
  let below = 0; // what the rows that are unfolded take
  for (const panel of dashboard.panels) {
    out.push({ ...panel, gridPos: { ...panel.gridPos, y: panel.gridPos.y + below } });
    if (panel.type === 'row' && asked.has('unfold')) {
      out.push(...panel.panels.map((one) => ({ ...one, gridPos: { ...one.gridPos, y: one.gridPos.y + below } })));
      below += Math.max(...panel.panels.map((one) => one.gridPos.y + one.gridPos.h)) - panel.gridPos.y - 1;
    }
  }
  if (width < phone) {
    let y = 0;
    for (const panel of out.sort((a, b) => a.gridPos.y - b.gridPos.y || a.gridPos.x - b.gridPos.x)) {
      panel.gridPos = { ...panel.gridPos, x: 0, w: columns, y };
      y += panel.gridPos.h;
    }
  }
  const column = (width + gap) / columns;
  return out.map((panel) => {
    const { x, y, w, h } = panel.gridPos;
    return { panel, place: { left: x * column, top: y * (cell + gap), width: w * column - gap, height: h * (cell + gap) - gap } };
  });
}

function Row({ panel }) {
  const theme = useTheme2();
  const unfolded = asked.has('unfold');
  return (
    <div style={{ display: 'flex', alignItems: 'center', height: '100%', gap: 8, ...theme.typography.h6, margin: 0 }}>
      <Icon name={unfolded ? 'angle-down' : 'angle-right'} />
      {panel.title}
      {!unfolded && <span style={{ color: theme.colors.text.secondary, fontStyle: 'italic', ...theme.typography.bodySmall }}>({panel.panels.length} panels)</span>}
    </div>
  );
}

function Head({ dashboard, chosen }) {
  const theme = useTheme2();
  const box = { border: `1px solid ${theme.colors.border.weak}`, borderRadius: 2, padding: '4px 8px', display: 'inline-block' };
  const minutes = Math.round((range.to - range.from) / 60000);
  const shown = dashboard.annotations.list.filter((one) => !one.hide);
  return (
    <div style={{ display: 'flex', flexWrap: 'wrap', gap: 8, alignItems: 'center', marginBottom: 16 }}>
      <b style={{ fontWeight: 500, marginRight: 16, width: innerWidth < phone ? '100%' : undefined }}>{dashboard.title}</b>
      {chosen.map(({ label, value }) => <span key={label}><span style={{ ...box, background: theme.colors.background.secondary }}>{label}</span><span style={{ ...box, background: theme.components.input.background }}>{value}</span></span>)}
      {shown.map((one) => <span key={one.name} style={{ color: theme.colors.text.secondary }}>{one.enable ? '☑' : '☐'} {one.name}</span>)}
      <span style={{ ...box, marginLeft: 'auto' }}>Last {minutes} minutes</span>
    </div>
  );
}

function Dashboard({ dashboard, chosen, panels, height }) {
  const theme = useTheme2();
  useLayoutEffect(() => {
    document.body.style.background = theme.colors.background.canvas;
    document.body.style.margin = 0;
  });
  return (
    <div style={{ padding: margin, overflow: 'hidden', color: theme.colors.text.primary }}>
      <Head {...{ dashboard, chosen }} />
      <div style={{ position: 'relative', height }}>
        {panels.map(({ panel, place, data, marks }) => (
          <div key={panel.id} data-panel={panel.title} style={{ position: 'absolute', ...place }}>
            {panel.type === 'row' ? <Row panel={panel} /> : (
              <PanelChrome {...place} title={panel.title} description={panel.description} padding={panel.type === 'table' ? 'none' : 'md'}>
                {(width, height) => <Panel {...{ panel, data, width, height }} alerts={marks} />}
              </PanelChrome>
            )}
          </div>
        ))}
      </div>
    </div>
  );
}

// told is what a panel says, which of its words are cut, and whether a part of its legend, or a column, is out of sight.
function told(element) {
  const within = [...element.querySelectorAll('*')];
  const cut = within.filter((one) => one.children.length === 0 && one.textContent && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX === 'hidden');
  const scrolled = within.some((one) => ['auto', 'scroll'].includes(getComputedStyle(one).overflowY) && one.role !== 'grid' && one.scrollHeight > one.clientHeight + 4);
  const narrow = within.some((one) => one.role === 'grid' && one.scrollWidth > one.clientWidth + 1);
  return { title: element.dataset.panel, text: element.innerText, cut: cut.map((one) => one.textContent), scrolled, narrow };
}

async function main() {
  const theme = createTheme({ colors: { mode: dark ? 'dark' : 'light' } });
  const dashboard = await (await fetch(`dashboards/${asked.get('dashboard')}.json`)).json();
  const { text, chosen } = await variables(dashboard.templating.list);
  const marks = [];
  for (const one of dashboard.annotations.list.filter((a) => a.enable && a.expr)) {
    marks.push(...(await alerts(one, text)).map((alert) => ({ ...alert, color: one.iconColor })));
  }
  const places = laid(dashboard, innerWidth - 2 * margin);
  const panels = await Promise.all(places.map(async ({ panel, place }) => {
    const data = panel.type === 'row' ? [] : await prepared(panel, await frames(panel, text, place.width), theme);
    return { panel, place, data, marks };
  }));
  await Promise.all(['400', '500'].map((weight) => document.fonts.load(`${weight} 14px Inter`)));
  const height = Math.max(...places.map(({ place }) => place.top + place.height));
  createRoot(document.getElementById('root')).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <Dashboard {...{ dashboard, chosen, panels, height }} />
    </ThemeContext.Provider>,
  );
  await new Promise((done) => setTimeout(done, 3000)); // icons are fetched; legends and tables are measured before they are drawn
  const said = [...document.querySelectorAll('[data-panel]')].map(told);
  await fetch('drawn', { method: 'POST', body: JSON.stringify({ page: location.search, width: innerWidth, panels: said }) });
}

main().catch(async (error) => {
  document.body.append(String(error.stack));
  await fetch('drawn', { method: 'POST', body: JSON.stringify({ page: location.search, error: String(error.stack) }) });
}).finally(() => document.body.setAttribute('data-drawn', ''));
