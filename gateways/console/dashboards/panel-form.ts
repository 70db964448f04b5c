// The form of a panel: its query in an editor with completion, how its rows are shown, and a preview.

import { chartStyles, type Panel, panelHeights, panelKinds, panelWidths } from '../../common/dashboards.js'
import { complete } from '../../common/sql-completion.js'
import { SqlEditor } from '../app/codemirror.js'
import { button, byId, element, select, show } from '../app/dom.js'
import type { Schema } from '../app/schema.js'
import { openFormDialog } from './form-dialog.js'
import { type PanelContext, PanelView } from './panel-view.js'

export interface PanelFormOptions {
  readonly schema: Schema
  /** Range and values for the preview; null: they are not known. */
  readonly context: () => PanelContext | null
  readonly done: (panel: Panel) => void
}

const kindNames: Record<Panel['kind'], string> = { chart: 'Chart', rows: 'Rows', value: 'Single value' }
const styleNames: Record<Panel['style'], string> = {
  ...{ lines: 'Lines', area: 'Stacked area', bars: 'Bars', points: 'Points', heat: 'Heat map' },
}
const widthNames: Record<Panel['width'], string> = { third: 'A third', half: 'Half', full: 'Whole width' }
const heightNames: Record<Panel['height'], string> = { low: 'Low', medium: 'Medium', high: 'High' }

export function openPanelForm(panel: Panel, { schema, context, done }: PanelFormOptions): void {
  const dialog = byId('details', HTMLDialogElement)
  const fields = new PanelFields(panel)
  const editorHost = element('div', { className: 'panel-editor' })
  const preview = element('div', { className: 'panel-preview' })
  const current = (): Panel => ({ ...fields.panel, sql: editor.text.trim() })
  const run = async (): Promise<void> => {
    const view = new PanelView(current(), noActions, true)
    preview.replaceChildren(view.host)
    const known = context()
    if (known === null) view.fail('The variables of the dashboard have no values yet.')
    else await view.load(known, new AbortController().signal)
  }
  const finish = (): void => {
    dialog.close()
    done(current())
  }
  const help = '@from, @to and @interval are the time range; @name is a variable of the dashboard.'
  openFormDialog(
    panel.sql === '' ? 'New panel' : 'Edit the panel',
    fields.host,
    editorHost,
    element('p', { className: 'quiet' }, `${help} Ctrl+Enter shows a preview.`),
    element(
      'div',
      { className: 'bar' },
      button('Done', finish, { className: 'main' }),
      button('Preview', () => void run()),
    ),
    preview,
  )
  const editor = new SqlEditor({
    host: editorHost,
    complete: (text, offset, asked) => complete(text, offset, asked, schema.completion),
    changed: () => {},
    keys: [{ key: 'Mod-Enter', run: () => void run() }],
  })
  editor.open(editor.draft(panel.sql))
  // Escape leaves the editor first, which keeps what was typed.
  editorHost.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return
    event.preventDefault()
    fields.title.focus()
  })
  dialog.showModal()
  fields.title.focus()
}

/** Everything of a panel but its query. */
class PanelFields {
  readonly host: HTMLElement
  readonly title: HTMLInputElement
  readonly #unit: HTMLInputElement
  readonly #styleField: HTMLElement
  readonly #unitField: HTMLElement
  #draft: Panel

  constructor(panel: Panel) {
    const { kind, style, width, height } = panel
    this.#draft = panel
    this.title = element('input', { value: panel.title, spellcheck: false })
    this.#unit = element('input', { value: panel.unit, size: 6, spellcheck: false })
    const styles = choice('Kind of chart', styleNames, chartStyles, style, (chosen) => this.#set({ style: chosen }))
    this.#styleField = field('Kind of chart', styles)
    this.#unitField = field('Unit', this.#unit)
    this.host = element(
      'div',
      { className: 'fields' },
      field('Title', this.title),
      field(
        'Shown as',
        choice('Shown as', kindNames, panelKinds, kind, (chosen) => this.#set({ kind: chosen })),
      ),
      this.#styleField,
      this.#unitField,
      field(
        'Width',
        choice('Width', widthNames, panelWidths, width, (chosen) => this.#set({ width: chosen })),
      ),
      field(
        'Height',
        choice('Height', heightNames, panelHeights, height, (chosen) => this.#set({ height: chosen })),
      ),
    )
    this.#set({})
  }

  get panel(): Panel {
    return { ...this.#draft, title: this.title.value.trim(), unit: this.#unit.value.trim() }
  }

  #set(changed: Partial<Panel>): void {
    this.#draft = { ...this.#draft, ...changed }
    show(this.#styleField, this.#draft.kind === 'chart')
    show(this.#unitField, this.#draft.kind === 'value')
  }
}

const noActions = {
  ...{ edit: () => {}, move: () => {}, duplicate: () => {}, remove: () => {}, open: () => {}, zoom: () => {} },
}

export function field(label: string, control: HTMLElement): HTMLElement {
  return element('label', { className: 'field' }, element('span', {}, label), control)
}

export function choice<Value extends string>(
  label: string,
  names: Readonly<Record<Value, string>>,
  values: readonly Value[],
  value: Value,
  changed: (value: Value) => void,
): HTMLSelectElement {
  const pairs = values.map((each): [string, string] => [each, names[each]])
  return select(label, pairs, value, (chosen) => {
    const found = values.find((each) => each === chosen)
    if (found !== undefined) changed(found)
  })
}
