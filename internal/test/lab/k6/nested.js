// One client calls a servlet that calls itself, DEPTHS deep one after the other; the innermost call
// takes MS.
import http from 'k6/http';
import { sleep } from 'k6';
import { Counter } from 'k6/metrics';

export const options = { vus: 1, iterations: 1, noConnectionReuse: true };

const ok = new Counter('lab_ok');
const failed = new Counter('lab_failed');

export default function () {
  for (const depth of __ENV.DEPTHS.split(',')) {
    const response = http.get(`${__ENV.URL}?depth=${depth}&ms=${__ENV.MS}`);
    (response.status === 200 ? ok : failed).add(1);
    sleep(1);
  }
}

export function handleSummary(data) {
  const of = (name) => (data.metrics[name] ? data.metrics[name].values.count : 0);
  return { stdout: `${JSON.stringify({ ok: of('lab_ok'), failed: of('lab_failed'), dropped: 0 })}\n` };
}
