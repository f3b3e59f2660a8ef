/** Elements of this page, found or made. Text only ever becomes text: nothing here reads mark-up. */

export const byId = (id) => document.getElementById(id);

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** `text` with some of its ranges wrapped, in order and without overlap: [{ begin, end, wrap(text) }]. */
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
