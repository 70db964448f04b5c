// Elements of the page. Values of the database become text nodes here and nowhere markup: nothing that a table holds is
// ever read as HTML.

/** The element of that id: the page has it. */
export function byId(id) {
  return document.getElementById(id)
}

/** A new element; properties are set, children are elements or texts. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag)
  Object.assign(made, properties)
  made.append(...children)
  return made
}

export function show(target, visible) {
  target.hidden = !visible
}
