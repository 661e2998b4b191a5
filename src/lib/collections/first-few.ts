/** The first five names, for a message; `…` stands for further ones. */
export function firstFew(names: readonly string[]): string {
  return [...names.slice(0, 5), ...(names.length > 5 ? ['…'] : [])].join(', ');
}
