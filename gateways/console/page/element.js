// Creates DOM elements. Values from the database become text nodes only, so table content is never parsed as HTML.

/** Returns the element with this id, which must exist. */
export function byId(id) {
  return document.getElementById(id)
}

/** Creates an element, sets its properties and appends its children (elements or strings). */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag)
  Object.assign(made, properties)
  made.append(...children)
  return made
}

export function show(target, visible) {
  target.hidden = !visible
}
