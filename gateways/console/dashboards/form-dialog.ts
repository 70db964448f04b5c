// Fills the dialog of the page with a form.

import { button, byId, element } from '../app/dom.js'

export function openFormDialog(title: string, ...content: readonly HTMLElement[]): void {
  const dialog = byId('details', HTMLDialogElement)
  const close = button('', () => dialog.close(), { icon: 'close', title: 'Close (Escape)', className: 'quiet' })
  const head = element('div', { className: 'dialog-head' }, element('h2', { id: 'details-title' }, title), close)
  dialog.replaceChildren(head, element('div', { className: 'details-body' }, ...content))
}
