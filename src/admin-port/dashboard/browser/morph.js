/**
 * Makes an element equal to another one by changing only the differences: focus, selection, scroll position and open
 * details are kept. Rows with a `data-key` are the same wherever they are.
 * @param {Node} from
 * @param {Node} to
 */
export function morph(from, to) {
  if (from.isEqualNode(to)) return;
  if (from instanceof Element && to instanceof Element) morphAttributes(from, to);
  const keyed = new Map(Array.from(from.childNodes, (node) => [keyOf(node), node]));
  const wanted = [...to.childNodes];
  wanted.forEach((node, i) => {
    const place = from.childNodes[i] ?? null;
    const key = keyOf(node);
    const old = key === undefined ? place : keyed.get(key);
    if (old === null || old === undefined) {
      from.insertBefore(node, place);
      return;
    }
    if (old !== place) from.insertBefore(old, place);
    if (old instanceof Text && node instanceof Text) old.data = node.data;
    else if (old.nodeName === node.nodeName) morph(old, node);
    else old.replaceWith(node);
  });
  for (const extra of [...from.childNodes].slice(wanted.length)) extra.remove();
}

/** @param {Node} node */
function keyOf(node) {
  return node instanceof HTMLElement ? node.dataset['key'] : undefined;
}

/**
 * @param {Element} from
 * @param {Element} to
 */
function morphAttributes(from, to) {
  const isSetByReader = (/** @type {string} */ name) => name === 'open' && from.tagName === 'DETAILS';
  for (const name of from.getAttributeNames()) {
    if (!to.hasAttribute(name) && !isSetByReader(name)) from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value && !isSetByReader(name)) from.setAttribute(name, value);
  }
}
