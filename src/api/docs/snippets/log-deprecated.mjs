// node --import ./log-deprecated.mjs your-program.js
import { subscribe } from 'node:diagnostics_channel';

const logged = new Set();

function report(method, url, header) {
  const since = header('deprecation');
  const call = method + ' ' + url.origin + url.pathname;
  if (!since || logged.has(call)) return;
  logged.add(call);
  console.warn('deprecated:', call, {
    since: new Date(Number(since.slice(1)) * 1000).toISOString(),
    sunset: header('sunset'),
    links: header('link'),
  });
}

// fetch
subscribe('undici:request:headers', ({ request, response }) => {
  const isOf = (name) => (_, i, all) => i % 2 === 1 && String(all[i - 1]).toLowerCase() === name;
  report(request.method, new URL(request.path, request.origin), (name) =>
    response.headers.filter(isOf(name)).map(String).join(', '),
  );
});

// node:http, node:https, and the libraries built on them
subscribe('http.client.response.finish', ({ request, response }) => {
  const url = new URL(request.path, request.protocol + '//' + request.getHeader('host'));
  report(request.method, url, (name) => response.headers[name]);
});
