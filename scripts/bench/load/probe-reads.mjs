// The process behind probe.ts: what it measures must not wait for what the bench itself is doing.
//   {go: {url, headers: [...]}}  sends GETs to `url` by the clock, with each set of headers in turn
//   {stop: true}                 ends that; sends back the time of every read in ms, null where it failed
import { Agent, request } from 'node:http';

/** Reads each second: a small part of what one process can answer, so that they queue behind nothing of their own. */
const rate = 500;

const agent = new Agent({ keepAlive: true, maxSockets: 64 });
let reads = [];
let clock;

process.on('message', async (message) => {
  if (message.go) {
    const { url, headers } = message.go;
    const began = performance.now();
    reads = [];
    clock = setInterval(() => {
      const due = ((performance.now() - began) / 1000) * rate;
      while (reads.length < due) reads.push(read(url, headers[reads.length % headers.length]));
    }, 1);
  } else {
    clearInterval(clock);
    process.send(await Promise.all(reads));
  }
});

function read(url, headers) {
  return new Promise((resolve) => {
    const began = performance.now();
    const sent = request(url, { headers, agent }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve(answer.statusCode === 200 ? performance.now() - began : null));
    });
    sent.on('error', () => resolve(null));
    sent.end();
  });
}
