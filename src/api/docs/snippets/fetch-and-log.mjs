const logged = new Set();

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
}
