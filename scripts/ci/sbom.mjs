// Writes the software bill of materials of the runtime dependencies to dist/sbom.json (CycloneDX), lists their
// licences, and fails on one that is not listed here.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';

const allowed = new Set([
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'CC0-1.0',
  'ISC',
  // libvips, a shared library that sharp loads.
  'LGPL-3.0-or-later',
  'MIT',
  'Python-2.0',
]);

/** Licences that npm does not recognize, because package.json states them in an old form. */
const known = { busboy: 'MIT', streamsearch: 'MIT' };

const options = ['sbom', '--package-lock-only', '--omit', 'dev', '--sbom-format', 'cyclonedx'];
const text = execFileSync('npm', options, { encoding: 'utf8', maxBuffer: 1 << 28 });
mkdirSync('dist', { recursive: true });
writeFileSync('dist/sbom.json', text);

const byLicence = new Map();
for (const { name, version, licenses = [] } of JSON.parse(text).components) {
  const stated = licenses
    .map(({ license, expression }) => expression ?? license.id ?? license.name)
    .join(' AND ');
  const licence = stated || (known[name] ?? '');
  byLicence.set(licence, [...(byLicence.get(licence) ?? []), `${name}@${version}`]);
}

let refused = 0;
for (const [licence, packages] of [...byLicence].toSorted(([a], [b]) => a.localeCompare(b))) {
  // Of alternatives, one is enough.
  const isAllowed = licence
    .split(' AND ')
    .every((part) => part.split(' OR ').some((one) => allowed.has(one.replaceAll(/[() ]/g, ''))));
  console.log(
    `${isAllowed ? ' ' : '!'} ${licence || 'no licence'} (${packages.length}): ${packages.join(', ')}`,
  );
  if (!isAllowed) refused += packages.length;
}
if (refused > 0) {
  console.error(`${refused} packages have licences that are not allowed (marked with "!")`);
  process.exit(1);
}
