// What Grafana's data source for Prometheus makes of a panel's queries: variables filled in,
// times on multiples of the step, a frame of each series or one table of each query.
import { FieldType, createDataFrame } from '@grafana/data';

const asked = new URLSearchParams(location.search);
export const range = { from: Number(asked.get('from')), to: Number(asked.get('to')) };
export const scrape = Number(asked.get('scrape')); // seconds
const seconds = Math.round((range.to - range.from) / 1000);

async function get(path, params) {
  const answer = await fetch(`${asked.get('prometheus')}/api/v1/${path}?${new URLSearchParams(params)}`);
  const body = await answer.json();
  if (body.status !== 'success') {
    throw new Error(body.error);
  }
  return body.data;
}

// variables are the texts that Grafana puts in the place of each, and what it shows of it.
export async function variables(list) {
  const chosen = [];
  const text = {};
  for (const v of list.filter((one) => one.type === 'query')) {
    const [, selector, label] = v.query.match(/^label_values\((.+), (\w+)\)$/);
    const given = asked.get('var-' + v.name);
    const found = await get(`label/${label}/values`, { 'match[]': insert(selector, text), start: range.from / 1000, end: range.to / 1000 });
    if (!v.includeAll) {
      text[v.name] = given ?? found[0] ?? '';
    } else if (given) {
      text[v.name] = anyOf([given]);
    } else {
      text[v.name] = v.allValue || anyOf(found);
    }
    if (v.hide !== 2) {
      chosen.push({ label: v.label, value: given ?? (v.includeAll ? 'All' : text[v.name]) });
    }
  }
  return { text, chosen };
}

function anyOf(values) {
  const escaped = values.map((v) => v.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('\\', '\\\\'));
  return escaped.length === 1 ? escaped[0] : `(${escaped.join('|')})`;
}

function insert(expr, text) {
  return expr.replace(/\$([a-z]\w*)/g, (name, key) => text[key] ?? name);
}

// frames are a panel's data, for a panel of so many pixels.
export async function frames(panel, text, width) {
  const step = Math.max(scrape, rounded(seconds / Math.max(1, width)));
  const rate = Math.max(step + scrape, 4 * scrape);
  const out = [];
  for (const target of panel.targets) {
    const query = insert(target.expr.replaceAll('$__rate_interval', rate + 's').replaceAll('$__range', seconds + 's'), text);
    const aligned = (ms) => Math.floor(ms / 1000 / step) * step;
    const { result } = target.instant
      ? await get('query', { query, time: range.to / 1000 })
      : await get('query_range', { query, step, start: aligned(range.from), end: aligned(range.to) });
    if (target.format === 'table') {
      if (result.length > 0) {
        out.push(table(result, target.refId, panel.targets.length));
      }
      continue;
    }
    out.push(...result.map((one) => series(one, target, step)));
  }
  return out;
}

// rounded is the next of the steps that people read.
function rounded(s) {
  return [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600].find((one) => s <= one * 1.2) ?? 1200;
}

const number = (text) => ({ '+Inf': Infinity, '-Inf': -Infinity })[text] ?? Number(text);

function series({ metric, value, values }, target, step) {
  const points = values ?? [value];
  const name = target.legendFormat
    ? target.legendFormat.replace(/\{\{\s*(.+?)\s*\}\}/g, (_, label) => metric[label] ?? '')
    : JSON.stringify(metric);
  return createDataFrame({
    refId: target.refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: points.map((p) => p[0] * 1000), config: { interval: step * 1000 } },
      { name: 'Value', type: FieldType.number, values: points.map((p) => number(p[1])), labels: metric, config: { displayNameFromDS: name } },
    ],
  });
}

function table(result, refId, queries) {
  const labels = [...new Set(result.flatMap((one) => Object.keys(one.metric)))].sort();
  return createDataFrame({
    refId,
    fields: [
      { name: 'Time', type: FieldType.time, values: result.map((one) => one.value[0] * 1000), config: {} },
      ...labels.map((name) => ({ name, type: FieldType.string, values: result.map((one) => one.metric[name] ?? ''), config: { filterable: true } })),
      { name: queries > 1 ? 'Value #' + refId : 'Value', type: FieldType.number, values: result.map((one) => number(one.value[1])), config: {} },
    ],
  });
}

// alerts are the times in which an annotation's query has a value, by title.
export async function alerts(annotation, text) {
  const step = Math.max(scrape, parseInt(annotation.step, 10));
  const { result } = await get('query_range', { query: insert(annotation.expr, text), step, start: range.from / 1000, end: range.to / 1000 });
  return result.map(({ metric, values }) => ({ title: metric.alertname, from: values[0][0] * 1000, to: values.at(-1)[0] * 1000 }));
}
