// The preview table of the import view. Its head has the name and type of each column, which the user may change; its
// body has the first rows of the file. Also encodes the changes as the field `schema` of the request.

import { importTypes } from './csv-preview.js'
import { element, select, show } from './dom.js'
import type { JsonObject } from './json.js'

export interface ColumnChoice {
  /** In the file. */
  readonly name: string
  /** The type that the file states, or that its first rows suggest. */
  readonly found: string
  /** In the table. */
  as: string
  /** Empty: as found. */
  type: string
  pattern: string
}

export function columnChoices(names: readonly string[], types: readonly string[]): ColumnChoice[] {
  return names.map((name, index) => ({ name, found: types[index] ?? 'VARCHAR', as: name, type: '', pattern: '' }))
}

/** The part `schema` of the request: what the user has changed. */
export function schemaOf(columns: readonly ColumnChoice[]): JsonObject[] {
  return columns
    .filter(({ name, as, type }) => type !== '' || as !== name)
    .map(({ name, as, type, pattern }) => ({
      name,
      ...(type === '' ? {} : { type }),
      ...(pattern === '' ? {} : { pattern }),
      ...(as === name ? {} : { as }),
    }))
}

/** Cells are null for NULL. `isStated`: the types are those of the file, and not guessed. */
export function previewTable(
  columns: readonly ColumnChoice[],
  rows: readonly (readonly (string | null)[])[],
  isStated: boolean,
): HTMLElement {
  const heads = columns.map((column) => headCell(column, isStated))
  const body = rows.map((row) => element('tr', {}, ...columns.map((_, index) => previewCell(row[index] ?? null))))
  return element(
    'div',
    { className: 'table-scroll preview', tabIndex: 0, ariaLabel: 'Preview' },
    element(
      'table',
      { className: 'plain' },
      element('thead', {}, element('tr', {}, ...heads)),
      element('tbody', {}, ...body),
    ),
  )
}

function headCell(column: ColumnChoice, isStated: boolean): HTMLElement {
  const { name, found } = column
  const as = element('input', {
    ...{ value: name, ariaLabel: `Name of ${name}`, title: `${name} in the file`, className: 'name' },
    ...{ spellcheck: false, required: true, size: Math.max(6, Math.min(24, name.length)) },
  })
  as.addEventListener('input', () => {
    column.as = as.value.trim()
  })
  const pattern = element('input', {
    ...{ placeholder: 'pattern', ariaLabel: `Pattern of ${name}`, hidden: true, className: 'pattern' },
    spellcheck: false,
  })
  pattern.addEventListener('input', () => {
    column.pattern = pattern.value
  })
  const options: [string, string][] = [
    ['', isStated ? found : `${found} ?`],
    ...importTypes.map((type): [string, string] => [type, type]),
  ]
  const type = select(`Type of ${name}`, options, '', (value) => {
    column.type = value
    show(pattern, /^(TIMESTAMP|DATE)/.test(value))
    if (pattern.hidden) column.pattern = ''
  })
  return element('th', { scope: 'col' }, as, type, pattern)
}

function previewCell(text: string | null): HTMLElement {
  if (text === null) return element('td', { className: 'null' }, 'NULL')
  return text === '' ? element('td', { className: 'null' }, 'empty') : element('td', {}, text.slice(0, 200))
}
