// Redraws a part of the page in place. Unchanged elements stay, so selected text, the focus and the scroll positions of
// tables survive.
//
// Rows of a table are matched by the text of their first cell, other elements by their position. A button that stays
// keeps its action, so rows with buttons need a first cell that tells them apart. An element with selected text is left
// alone until the selection ends.

/** Makes the children of `host` look like `content`, with as few changes as possible. */
export function patchChildren(host: Element, content: readonly Node[]): void {
  const pool = [...host.childNodes]
  const isKeyed = host instanceof HTMLTableSectionElement
  for (const [place, made] of content.entries()) {
    const known = isKeyed ? pool.find((node) => keyOf(node) === keyOf(made)) : pool[0]
    if (known !== undefined) pool.splice(pool.indexOf(known), 1)
    const kept = known === undefined ? made : patched(known, made)
    const there = host.childNodes[place] ?? null
    if (there !== kept) host.insertBefore(kept, there)
  }
  for (const node of pool) if (!isSelected(node)) node.parentNode?.removeChild(node)
}

/** The node that stands for `made`: the known one, if it can be changed. */
function patched(known: Node, made: Node): Node {
  if (known.isEqualNode(made)) return known
  if (known instanceof Text && made instanceof Text && isSelected(known)) return known
  if (!(known instanceof Element) || !(made instanceof Element) || known.tagName !== made.tagName) {
    known.parentNode?.removeChild(known)
    return made
  }
  const isText = known.children.length === 0 && made.children.length === 0
  if (isText && isSelected(known)) return known
  for (const { name } of [...known.attributes]) if (!made.hasAttribute(name)) known.removeAttribute(name)
  for (const { name, value } of [...made.attributes])
    if (known.getAttribute(name) !== value) known.setAttribute(name, value)
  if (!isText) patchChildren(known, [...made.childNodes])
  else if (known.textContent !== made.textContent) known.textContent = made.textContent
  return known
}

function keyOf(row: Node): string {
  return row.firstChild?.textContent ?? ''
}

/** Whether the user has selected text in it. */
function isSelected(node: Node): boolean {
  const selection = getSelection()
  return selection !== null && !selection.isCollapsed && selection.containsNode(node, true)
}
