// RATE clients a second for SECONDS, whatever became of those before them; each sends one
// request on a connection of its own and waits for TIMEOUT, connecting included.
import http from 'k6/http';
import { Counter } from 'k6/metrics';

export const options = {
  scenarios: {
    open: {
      executor: 'constant-arrival-rate', rate: Number(__ENV.RATE), duration: `${__ENV.SECONDS}s`,
      preAllocatedVUs: Number(__ENV.RATE) * 6, gracefulStop: '30s',
    },
  },
  discardResponseBodies: true, noConnectionReuse: true,
};

const ok = new Counter('lab_ok');
const failed = new Counter('lab_failed');

export default function () {
  const response = http.get(__ENV.URL, { timeout: __ENV.TIMEOUT });
  (response.status === 200 ? ok : failed).add(1);
}

export function handleSummary(data) {
  const of = (name) => (data.metrics[name] ? data.metrics[name].values.count : 0);
  return { stdout: `${JSON.stringify({ ok: of('lab_ok'), failed: of('lab_failed'), dropped: of('dropped_iterations') })}\n` };
}
