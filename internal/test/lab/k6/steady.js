// VUS clients for SECONDS, each with a connection of its own for each request, a request every 50 ms.
import http from 'k6/http';
import { sleep } from 'k6';

export const options = {
  scenarios: { steady: { executor: 'constant-vus', vus: Number(__ENV.VUS), duration: `${__ENV.SECONDS}s` } },
  discardResponseBodies: true, noConnectionReuse: true, summaryTrendStats: ['med', 'p(99)'],
};

export default function () {
  http.get(__ENV.URL);
  sleep(0.05);
}

export function handleSummary(data) {
  const of = (name, what) => data.metrics[name].values[what];
  return {
    stdout: `${JSON.stringify({
      rate: of('http_reqs', 'rate'), p99: of('http_req_duration', 'p(99)'), failed: of('http_req_failed', 'passes'),
    })}\n`,
  };
}
