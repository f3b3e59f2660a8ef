/** Lookup and creation of elements. Strings become text nodes, never markup. */

export const byId = (id) => document.getElementById(id);

export function element(name, properties = {}, ...children) {
  const created = Object.assign(document.createElement(name), properties);
  created.append(...children);
  return created;
}

/** Returns `text` as nodes with ranges wrapped: [{ begin, end, wrap(text) }], ordered, without overlap. */
export function wrapped(text, ranges) {
  const nodes = [];
  let from = 0;
  for (const { begin, end, wrap } of ranges) {
    if (begin > from) nodes.push(text.slice(from, begin));
    nodes.push(wrap(text.slice(begin, end)));
    from = end;
  }
  if (from < text.length) nodes.push(text.slice(from));
  return nodes;
}
