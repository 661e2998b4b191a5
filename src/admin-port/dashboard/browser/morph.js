/**
 * Makes an element equal to another one by changing only the differences: focus, selection, scroll position and open
 * details are kept.
 * @param {Node} from
 * @param {Node} to
 */
export function morph(from, to) {
  if (from.isEqualNode(to)) return;
  if (from instanceof Element && to instanceof Element) morphAttributes(from, to);
  const current = [...from.childNodes];
  const wanted = [...to.childNodes];
  wanted.forEach((node, i) => {
    const old = current[i];
    if (old === undefined) from.appendChild(node);
    else if (old instanceof Text && node instanceof Text) old.data = node.data;
    else if (old.nodeName === node.nodeName) morph(old, node);
    else old.replaceWith(node);
  });
  for (const extra of current.slice(wanted.length)) extra.remove();
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
