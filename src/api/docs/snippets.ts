/** Complete code for client teams: the tests run each piece exactly as it is shown. */
export interface Snippet {
  /** What it is for, as a line above the code. */
  label: string;
  code: string;
}

/** Shows the headers of one answer. `credentials` are header lines with shell variables. */
export function curlSnippet(credentials: readonly string[]): Snippet {
  const lines = [
    'curl -s -o /dev/null -D - "$BASE_URL/api/profile/"',
    ...credentials.map((header) => `  -H "${header}"`),
  ];
  return {
    label: 'curl: the headers of one answer',
    code: `${lines.join(' \\\n')} |\n  grep -iE '^(deprecation|sunset|link):'`,
  };
}

export const fetchSnippet: Snippet = {
  label: 'fetch, in browsers and elsewhere: in place of fetch',
  code: String.raw`const logged = new Set();

export async function fetchAndLog(input, init) {
  const response = await fetch(input, init);
  const since = response.headers.get('Deprecation');
  const { pathname } = new URL(response.url);
  if (since !== null && !logged.has(pathname)) {
    logged.add(pathname);
    console.warn('deprecated:', pathname, {
      since: new Date(Number(since.slice(1)) * 1000).toISOString(),
      sunset: response.headers.get('Sunset'),
      links: response.headers.get('Link'),
    });
  }
  return response;
}`,
};

export const nodeSnippet: Snippet = {
  label: 'Node: log-deprecated.mjs, for all calls of a program',
  code: String.raw`// node --import ./log-deprecated.mjs your-program.js
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
  const headers = new Headers();
  response.headers.forEach((text, i, all) => {
    if (i % 2 === 1) headers.append(String(all[i - 1]), String(text));
  });
  report(request.method, new URL(request.path, request.origin), (name) => headers.get(name));
});

// node:http, node:https, and the libraries built on them
subscribe('http.client.response.finish', ({ request, response }) => {
  const url = new URL(request.path, request.protocol + '//' + request.getHeader('host'));
  report(request.method, url, (name) => response.headers[name]);
});`,
};

export const pythonSnippet: Snippet = {
  label: 'Python: log_deprecated.py, for all calls by urllib',
  code: String.raw`# import log_deprecated
import logging
import urllib.request
from datetime import datetime, timezone
from urllib.parse import urlsplit

logged = set()


class LogDeprecated(urllib.request.BaseHandler):
    def http_response(self, request, response):
        since = response.headers["Deprecation"]
        call = (request.get_method(), urlsplit(request.full_url).path)
        if since and call not in logged:
            logged.add(call)
            logging.getLogger("deprecated").warning(
                "deprecated: %s %s since %s, sunset %s, links %s",
                *call,
                datetime.fromtimestamp(int(since[1:]), timezone.utc).isoformat(),
                response.headers["Sunset"],
                response.headers["Link"],
            )
        return response

    https_response = http_response


urllib.request.install_opener(urllib.request.build_opener(LogDeprecated))`,
};
