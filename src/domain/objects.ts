/** Names an image object: contract 2.3. */
export interface ObjectReference {
  datasourceId: string;
  objectDefinitionId: string;
}

/** One string for a reference; ids hold no control character, so the line feed cannot be taken for an id's. */
export function encodeReference(reference: ObjectReference): string {
  return `${reference.datasourceId}\n${reference.objectDefinitionId}`;
}

/** The reference that `encodeReference` wrote. */
export function decodeReference(encoded: string): ObjectReference {
  const cut = encoded.indexOf('\n');
  return { datasourceId: encoded.slice(0, cut), objectDefinitionId: encoded.slice(cut + 1) };
}

/**
 * The image URL that an organization's template gives for a reference: `{datasourceId}` and
 * `{objectDefinitionId}` are replaced by the percent-encoded ids.
 */
export function fillTemplate(template: string, reference: ObjectReference): string {
  return template.replace(/\{(datasourceId|objectDefinitionId)\}/g, (_, field: keyof ObjectReference) =>
    encodeURIComponent(reference[field]),
  );
}

/** Why a template cannot serve, or undefined. */
export function templateFault(template: string): string | undefined {
  const probe = fillTemplate(template, { datasourceId: 'd', objectDefinitionId: 'o' });
  if (!URL.canParse(probe)) return 'must be an absolute URL';
  if (!/^https?:$/.test(new URL(probe).protocol)) return 'must be an http or https URL';
  return undefined;
}
