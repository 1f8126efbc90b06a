// A minute that the sample server bears, a minute that it does not, over and
// over: of 60 clients at once 31 fit. Every request has a connection of its own,
// as from many clients.
import { sleep } from 'k6';
import http from 'k6/http';

const calm = 8;
const overload = 60;
const stages = [];
for (let i = 0; i < 10; i++) {
  stages.push(
    { duration: '1s', target: calm }, { duration: '30s', target: calm },
    { duration: '1s', target: overload }, { duration: '60s', target: overload },
  );
}

export const options = {
  scenarios: { waves: { executor: 'ramping-vus', startVUs: calm, stages } },
  noConnectionReuse: true, discardResponseBodies: true,
};

export default function () {
  const answer = http.get(__ENV.URL, { timeout: '20s' });
  if (answer.error_code) sleep(1); // refused while the server starts: nobody tries again at once
}
