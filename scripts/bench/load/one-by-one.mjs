// The process behind closed-loop.ts: on each connection a request is sent once the one before has been answered.
//   {url, work, connections, requests, first}  sends so many; sends back the time of each in ms, or why one failed
import { Agent, request } from 'node:http';

const fill = (template, user, n) => template.replaceAll('{user}', user).replaceAll('{n}', n);

process.on('message', async ({ url, work, users, connections, requests, first }) => {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const times = [];
  let next = first;

  const send = (n) =>
    new Promise((resolve, reject) => {
      const headers = {
        'x-api-key': fill(work.apiKey, n % users, n),
        'x-platform-organization-id': work.organization,
      };
      const body = work.body === undefined ? undefined : Buffer.from(fill(work.body, n % users, n));
      if (body !== undefined) {
        headers['content-type'] = 'application/json';
        headers['content-length'] = String(body.length);
      }
      const began = performance.now();
      const sent = request(url + work.path, { method: work.method, headers, agent }, (answer) => {
        answer.resume();
        answer.on('error', reject);
        answer.on('end', () => {
          times.push(performance.now() - began);
          if (answer.statusCode < 300) resolve();
          else reject(new Error(`${work.method} ${url}${work.path} was answered ${answer.statusCode}`));
        });
      });
      sent.on('error', reject);
      sent.end(body);
    });
  const loop = async () => {
    while (next < first + requests) await send(next++);
  };

  try {
    await Promise.all(Array.from({ length: connections }, loop));
    process.send({ times });
  } catch (error) {
    process.send({ failed: String(error) });
  }
  agent.destroy();
});
