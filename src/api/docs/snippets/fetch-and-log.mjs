const logged = new Set();

export async function fetchAndLog(input, init) {
  const response = await fetch(input, init);
  const since = response.headers.get('Deprecation');
  if (since === null) return response;
  const call = (init?.method ?? input.method ?? 'GET') + ' ' + new URL(response.url).pathname;
  if (!logged.has(call)) {
    logged.add(call);
    console.warn('deprecated:', call, {
      since: new Date(Number(since.slice(1)) * 1000).toISOString(),
      sunset: response.headers.get('Sunset'),
      links: response.headers.get('Link'),
    });
  }
  return response;
}
