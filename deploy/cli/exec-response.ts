// Formats JSON responses of /exec for people and scripts: result rows as a table, CSV or another format, and the
// outcome of statements without rows.

import { displayWidth } from './display-width.js'

export interface ExecResponse {
  readonly columns?: readonly { readonly name: string; readonly type: string }[]
  readonly dataset?: readonly (readonly unknown[])[]
  readonly count?: number
  /** The server's row limit truncated the result. */
  readonly capped?: boolean
  readonly inserted?: number
  readonly updated?: number
  readonly deleted?: number
  readonly timings?: { readonly compiler: number; readonly execute: number }
}

/** A response of /exec in which integers keep every digit. */
export function parseResponse(json: string): ExecResponse {
  return JSON.parse(exactNumbers(json)) as ExecResponse
}

/** Quotes integers that exceed the precision of a JavaScript number; strings and other numbers stay unchanged. */
function exactNumbers(json: string): string {
  return json.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g, (token) =>
    /^-?\d{16,}$/.test(token) ? `"${token}"` : token,
  )
}

export function doneText({ inserted, updated, deleted }: ExecResponse): string {
  const [rows, done] =
    inserted !== undefined
      ? [inserted, 'inserted']
      : updated !== undefined
        ? [updated, 'updated']
        : [deleted, 'deleted']
  return rows === undefined ? 'OK\n' : `OK, ${rows} ${rows === 1 ? 'row' : 'rows'} ${done}\n`
}

export function cutText({ count, dataset = [] }: ExecResponse): string {
  const rows = (count ?? dataset.length).toLocaleString('en-US')
  return `first ${rows} rows; there are more: penstock export writes all of them`
}

export function csvText({ columns = [], dataset = [] }: ExecResponse): string {
  const lines = [columns.map(({ name }) => csvField(name)), ...dataset.map((row) => row.map(csvField))]
  return lines.map((fields) => `${fields.join(',')}\n`).join('')
}

/** NULL is empty. */
function plainText(value: unknown): string {
  if (value === null || value === undefined) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function csvField(value: unknown): string {
  const text = plainText(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Values contain no tabs and line ends: these are written as \\t and \\n, as COPY of PostgreSQL writes them. */
export function tsvText({ columns = [], dataset = [] }: ExecResponse): string {
  const field = (value: unknown): string =>
    plainText(value).replace(/[\\\t\n\r]/g, (character) => tsvEscapes[character] ?? character)
  const lines = [columns.map(({ name }) => field(name)), ...dataset.map((row) => row.map(field))]
  return lines.map((fields) => `${fields.join('\t')}\n`).join('')
}

const tsvEscapes: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' }

/** An object a row. Integers of more than 15 digits are strings, because readers would round them. */
export function jsonLinesText({ columns = [], dataset = [] }: ExecResponse): string {
  return dataset
    .map((row) => `${JSON.stringify(Object.fromEntries(columns.map(({ name }, index) => [name, row[index]])))}\n`)
    .join('')
}

export function markdownText({ columns = [], dataset = [] }: ExecResponse): string {
  const cell = (value: unknown): string => plainText(value).replaceAll('|', '\\|').replace(/\r?\n/g, '<br>')
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`
  const rule = columns.map(({ type }) => (isNumeric(type) ? '---:' : '---'))
  return line(columns.map(({ name }) => cell(name))) + line(rule) + dataset.map((row) => line(row.map(cell))).join('')
}

/** A page of its own, which browsers show and spreadsheets open. */
export function htmlText({ columns = [], dataset = [] }: ExecResponse): string {
  const cells = (row: readonly unknown[]): string =>
    row
      .map((value, index) => {
        const numeric = isNumeric(columns[index]?.type) ? ' class="n"' : ''
        return `<td${numeric}>${escaped(plainText(value)).replace(/\r?\n/g, '<br>')}</td>`
      })
      .join('')
  const head = columns.map(({ name }) => `<th>${escaped(name)}</th>`).join('')
  const body = dataset.map((row) => `<tr>${cells(row)}</tr>\n`).join('')
  const style = 'table{border-collapse:collapse}td,th{border:1px solid;padding:2px 6px}.n{text-align:right}'
  return `<!doctype html>\n<meta charset="utf-8">\n<style>${style}</style>\n<table>\n<tr>${head}</tr>\n${body}</table>\n`
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** A line for each value, for rows that are wider than a terminal. */
export function verticalText(response: ExecResponse): string {
  const { columns = [], dataset = [] } = response
  const size = Math.max(0, ...columns.map(({ name }) => displayWidth(name)))
  const rows = dataset.map((row, index) => {
    const lines = columns.map(({ name }, place) => {
      const [first = '', ...others] = cellText(row[place]).split('\n')
      const rest = others.map((text) => `\n${' '.repeat(size)} | ${text}`).join('')
      return `${padded(name, size, false)} | ${first}`.trimEnd() + rest
    })
    return `-- ${index + 1} --\n${lines.join('\n')}\n`
  })
  return `${rows.join('')}(${summaryOf(response)})\n`
}

export function tableText(response: ExecResponse): string {
  const { columns = [], dataset = [] } = response
  const cells = dataset.map((row) => row.map(cellText))
  const widths = columns.map(({ name }, index) =>
    cells.reduce(
      (most, row) => Math.max(most, ...(row[index] ?? '').split('\n').map(displayWidth)),
      displayWidth(name),
    ),
  )
  const line = (row: readonly string[], right: boolean): string =>
    row
      .map((text, index) => padded(text, widths[index] ?? 0, right && isNumeric(columns[index]?.type)))
      .join(' | ')
      .trimEnd()
  const rows = [
    line(
      columns.map(({ name }) => name),
      false,
    ),
    widths.map((size) => '-'.repeat(size)).join('-+-'),
  ]
  for (const row of cells) {
    const split = row.map((text) => text.split('\n'))
    const height = Math.max(1, ...split.map(({ length }) => length))
    for (let n = 0; n < height; n++)
      rows.push(
        line(
          split.map((parts) => parts[n] ?? ''),
          true,
        ),
      )
  }
  return `${rows.join('\n')}\n(${summaryOf(response)})\n`
}

function summaryOf(response: ExecResponse): string {
  const total = response.count ?? response.dataset?.length ?? 0
  return response.capped === true ? cutText(response) : `${total} ${total === 1 ? 'row' : 'rows'}`
}

function cellText(value: unknown): string {
  const text = plainText(value)
  // A cell may have several lines. Other control characters are escaped, because a terminal would interpret them.
  return text
    .replaceAll('\t', '    ')
    .replace(/(?!\n)\p{Cc}/gu, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`)
}

function padded(text: string, size: number, right: boolean): string {
  const blanks = ' '.repeat(Math.max(0, size - displayWidth(text)))
  return right ? blanks + text : text + blanks
}

function isNumeric(type: string | undefined): boolean {
  return /^(BYTE|SHORT|INT|LONG|FLOAT|DOUBLE|DECIMAL)/.test(type ?? '')
}
