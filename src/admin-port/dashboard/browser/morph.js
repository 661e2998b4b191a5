/**
 * Makes an element's content what the markup says, touching only what differs: the focus, a selection, the scroll
 * position and what has been unfolded stay as they are.
 * @param {Element} element
 * @param {string} markup as the server rendered and escaped it
 */
export function morph(element, markup) {
  const template = document.createElement('template');
  template.innerHTML = markup;
  morphChildren(element, template.content);
}

/**
 * @param {Node} from
 * @param {Node} to
 */
function morphChildren(from, to) {
  const old = [...from.childNodes];
  const fresh = [...to.childNodes];
  fresh.forEach((node, i) => {
    const current = old[i];
    if (current === undefined) from.appendChild(node);
    else morphNode(current, node);
  });
  for (const extra of old.slice(fresh.length)) extra.remove();
}

/**
 * @param {ChildNode} from
 * @param {Node} to
 */
function morphNode(from, to) {
  if (from.isEqualNode(to)) return;
  if (from instanceof Element && to instanceof Element && from.tagName === to.tagName) {
    morphAttributes(from, to);
    morphChildren(from, to);
  } else if (from instanceof Text && to instanceof Text) {
    from.data = to.data;
  } else {
    from.replaceWith(to);
  }
}

/**
 * @param {Element} from
 * @param {Element} to
 */
function morphAttributes(from, to) {
  // What the reader has unfolded is the reader's.
  const isOwn = (/** @type {string} */ name) => name === 'open' && from.tagName === 'DETAILS';
  for (const name of from.getAttributeNames()) {
    if (!to.hasAttribute(name) && !isOwn(name)) from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value && !isOwn(name)) from.setAttribute(name, value);
  }
}
