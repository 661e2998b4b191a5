// The same as load.lua, for machines without wrk: node load-autocannon.mjs '{"url":…,"work":…,…}'.
import autocannon from 'autocannon';

const { url, work, seconds, first, users, connections } = JSON.parse(process.argv[2]);
let next = first;

function fill(template, n) {
  return template
    .replaceAll('{user}', n % users)
    .replaceAll('{n}', n)
    .replaceAll('{turn}', Math.floor(n / users))
    .replaceAll('{nextTurn}', Math.floor(n / users) + 1);
}

const result = await autocannon({
  url: `${url}${work.path}`,
  connections,
  duration: seconds,
  requests: [
    {
      method: work.method,
      setupRequest: (request) => {
        const n = next++;
        const headers = {
          'x-api-key': fill(work.apiKey, n),
          'x-platform-organization-id': work.organization,
        };
        if (work.body === undefined) return { ...request, headers };
        headers['content-type'] = 'application/json';
        return { ...request, headers, body: fill(work.body, n) };
      },
    },
  ],
});
const summary = {
  requests: result.requests.total,
  seconds: result.duration,
  p50: result.latency.p50,
  p99: result.latency.p99,
  failed: result.errors + result.timeouts + result.non2xx,
};
process.stdout.write(`RESULT ${JSON.stringify(summary)}\n`);
