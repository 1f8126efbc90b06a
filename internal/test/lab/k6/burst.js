// VUS clients connect at the same moment, or one after the other within WITHIN
// ms; each sends one request on a connection of its own and waits. k6 gives up
// connecting after 30 s (its own, not to be changed) and the whole request after
// TIMEOUT.
import http from 'k6/http';
import { sleep } from 'k6';
import { Counter, Trend } from 'k6/metrics';

export const options = {
  scenarios: {
    burst: {
      executor: 'per-vu-iterations', vus: Number(__ENV.VUS), iterations: 1,
      maxDuration: '5m', gracefulStop: '0s',
    },
  },
  setupTimeout: '120s', discardResponseBodies: true, noConnectionReuse: true,
  summaryTrendStats: ['min', 'med', 'max'],
};

const counts = {};
for (const kind of ['ok', 'connect_timeout', 'read_timeout', 'reset', 'refused', 'closed', 'bad_answer', 'other']) {
  counts[kind] = new Counter(`lab_${kind}`);
}
const began = new Trend('lab_began'); // ms after the first client could
const ended = new Trend('lab_ended');
const latency = new Trend('lab_latency'); // of those served, connecting included

export function setup() {
  return { zero: Date.now() };
}

// https://grafana.com/docs/k6/latest/javascript-api/error-codes/
function outcome(response) {
  switch (response.error_code) {
    case 0: return 'ok';
    case 1050: return 'read_timeout'; // "request timeout": connected within 30 s, or it were 1211
    case 1211: return 'connect_timeout';
    case 1212: return 'refused';
    case 1220: return 'reset';
    default:
      if (/EOF/.test(response.error)) return 'closed';
      return response.status > 0 ? 'bad_answer' : 'other';
  }
}

// untilTurn lets a second pass for all to be ready, then sends off one by one.
function untilTurn(zero) {
  const within = Number(__ENV.WITHIN);
  if (within > 0) sleep(Math.max(0, zero + 1000 + (__VU - 1) / __ENV.VUS * within - Date.now()) / 1000);
}

export default function (data) {
  untilTurn(data.zero);
  const start = Date.now();
  began.add(start - data.zero);
  const response = http.get(__ENV.URL, { timeout: __ENV.TIMEOUT });
  const end = Date.now();
  const kind = outcome(response);
  counts[kind].add(1);
  ended.add(end - data.zero);
  if (kind === 'ok') latency.add(end - start);
  if (kind === 'other') console.error(`${response.error_code} ${response.error}`);
}

export function handleSummary(data) {
  const out = {};
  for (const [name, metric] of Object.entries(data.metrics)) {
    if (name.startsWith('lab_')) out[name.slice(4)] = metric.values;
  }
  return { stdout: JSON.stringify(out) };
}
