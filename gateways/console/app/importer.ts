// The import view of the console: previews a dropped file, lets the user change column names and types, and uploads the
// file, showing the progress. CSV files are sent to /imp, line protocol to /write in requests of whole lines. Rejected
// rows are listed with the reason.

import { literal } from '../../common/sql-text.js'
import { pathOf, rowsOf, upload } from './api.js'
import { type CsvPreview, importTypes, previewCsv } from './csv-preview.js'
import { button, byId, element, errorText, select, show } from './dom.js'
import { asList, asNumber, asText, isObject, objectIn } from './json.js'
import { plainTable } from './table-details.js'
import { grouped, sizeText } from './values.js'

const previewBytes = 256 * 1024
const previewLines = 100
const lineRequestBytes = 4 * 1024 * 1024
const rejectsShown = 200

const kinds = [
  { pattern: /\.(csv|tsv|txt)(\.gz)?$/i, kind: 'csv' },
  { pattern: /\.(lp|ilp|line)$/i, kind: 'lines' },
  { pattern: /\.parquet$/i, kind: 'parquet' },
  { pattern: /\.(sql|dump)(\.gz)?$/i, kind: 'dump' },
] as const

export function openImport(imported: () => void): void {
  const zone = byId('drop-zone', HTMLElement)
  const input = byId('import-file', HTMLInputElement)
  const pane = byId('import-pane', HTMLElement)
  const take = (files: FileList | null | undefined): void => {
    pane.replaceChildren(...[...(files ?? [])].map((file) => new FileImport(file, imported).host))
  }
  input.addEventListener('change', () => take(input.files))
  const window = document.documentElement
  window.addEventListener('dragover', (event) => {
    if (event.dataTransfer?.types.includes('Files') !== true) return
    event.preventDefault()
    zone.classList.add('over')
  })
  window.addEventListener('dragleave', () => zone.classList.remove('over'))
  window.addEventListener('drop', (event) => {
    zone.classList.remove('over')
    if (event.dataTransfer === null || event.dataTransfer.files.length === 0) return
    event.preventDefault()
    location.hash = '#import'
    take(event.dataTransfer.files)
  })
}

interface ColumnChoice {
  readonly name: string
  type: string
  pattern: string
}

/** One file from its preview to its result. */
class FileImport {
  readonly host = element('section', { className: 'import-card' })
  readonly #file: File
  readonly #imported: () => void
  readonly #form = element('form', { className: 'import-form' })
  readonly #result = element('div', { className: 'import-result', ariaLive: 'polite' })
  readonly #start = element('button', { type: 'submit', className: 'main' }, 'Import')
  #columns: ColumnChoice[] = []
  #abort: AbortController | null = null

  constructor(file: File, imported: () => void) {
    this.#file = file
    this.#imported = imported
    const head = element('h2', {}, file.name, ' ', element('small', {}, sizeText(file.size)))
    this.host.append(head, this.#form, this.#result)
    const kind = kinds.find(({ pattern }) => pattern.test(file.name))?.kind ?? 'csv'
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault()
      void this.#run(kind === 'lines' ? () => this.#sendLines() : () => this.#sendCsv())
    })
    if (kind === 'csv') void this.#previewCsv()
    else if (kind === 'lines') void this.#previewLines()
    else this.#refuse(kind)
  }

  #refuse(kind: 'parquet' | 'dump'): void {
    const texts = {
      parquet:
        'Parquet files cannot be uploaded yet. Put the file into the folder of copy.import.root on the server, and read it by read_parquet() or COPY.',
      dump: 'Dumps of SQLite are imported by the command line tool: penstock import.',
    }
    const pages = { parquet: '/docs/sql/read-parquet.html', dump: '/docs/sqlite.html' }
    const link = element('a', { href: pages[kind], target: '_blank' }, 'How to do that')
    this.#form.replaceChildren(element('p', {}, `${texts[kind]} `, link))
  }

  // CSV ------------------------------------------------------------------------------------------------------------

  async #previewCsv(): Promise<void> {
    try {
      const { text, whole } = await beginningOf(this.#file)
      const preview = previewCsv(text, whole)
      this.#columns = preview.names.map((name) => ({ name, type: '', pattern: '' }))
      this.#form.replaceChildren(
        this.#csvFields(preview),
        this.#previewTable(preview),
        element('div', { className: 'bar' }, this.#start),
      )
    } catch (error) {
      this.#form.replaceChildren(element('p', { className: 'problem' }, errorText(error)))
    }
  }

  #csvFields({ names, types, delimiter, hasHeader, rows }: CsvPreview): HTMLElement {
    const table = this.#file.name.replace(/\.gz$/i, '').replace(/\.[^.]*$/, '')
    const times = names.filter(
      (_, index) => types[index]?.startsWith('TIMESTAMP') || types[index] === 'LONG' || types[index] === 'VARCHAR',
    )
    const delimiters: Record<string, string> = { ',': 'comma', '\t': 'tab', ';': 'semicolon', '|': 'pipe' }
    const found = `${delimiters[delimiter] ?? delimiter}-separated, ${hasHeader ? 'with' : 'without'} a header; the first ${rows.length} rows`
    return element(
      'div',
      { className: 'fields' },
      field('Table', element('input', { name: 'name', value: table, required: true, spellcheck: false })),
      field(
        'Designated timestamp',
        choice('timestamp', [
          ['*', 'found by the server'],
          ['', 'none'],
          ...times.map((name): [string, string] => [name, name]),
        ]),
      ),
      field(
        'Partition by',
        choice('partitionBy', [
          ['', 'as the table, else DAY'],
          ...['NONE', 'HOUR', 'DAY', 'WEEK', 'MONTH', 'YEAR'].map((unit): [string, string] => [unit, unit]),
        ]),
      ),
      field(
        'Bad rows',
        choice('atomicity', [
          ['abort', 'store nothing'],
          ['skipRow', 'are skipped and listed'],
        ]),
      ),
      field(
        'First line',
        choice('forceHeader', [
          ['', 'found by the server'],
          ['true', 'is a header'],
        ]),
      ),
      field(
        'Existing rows',
        choice('overwrite', [
          ['', 'stay'],
          ['true', 'are replaced'],
        ]),
      ),
      element(
        'p',
        { className: 'quiet' },
        `${found}. A type that you choose is binding; the server finds the others in the whole file.`,
      ),
    )
  }

  #previewTable({ names, types, rows }: CsvPreview): HTMLElement {
    const heads = names.map((name, index) => {
      const own = this.#columns[index]
      const options: [string, string][] = [
        ['', `${types[index]} ?`],
        ...importTypes.map((type): [string, string] => [type, type]),
      ]
      const pattern = element('input', {
        placeholder: 'pattern',
        ariaLabel: `Pattern of ${name}`,
        hidden: true,
        className: 'pattern',
        spellcheck: false,
      })
      pattern.addEventListener('input', () => {
        if (own !== undefined) own.pattern = pattern.value
      })
      const type = select(`Type of ${name}`, options, '', (value) => {
        if (own !== undefined) own.type = value
        show(pattern, /^(TIMESTAMP|DATE)/.test(value))
      })
      return element('th', { scope: 'col' }, element('div', { className: 'name' }, name), type, pattern)
    })
    const body = rows.map((row) => element('tr', {}, ...names.map((_, index) => previewCell(row[index] ?? ''))))
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

  async #sendCsv(): Promise<void> {
    const values = new FormData(this.#form)
    const query = new URLSearchParams({ fmt: 'json' })
    for (const [key, value] of values) {
      if (typeof value !== 'string' || (key === 'timestamp' ? value === '*' : value === '')) continue
      query.set(key, value)
    }
    const form = new FormData()
    const chosen = this.#columns.filter(({ type }) => type !== '')
    const schema = chosen.map(({ name, type, pattern }) => ({ name, type, ...(pattern === '' ? {} : { pattern }) }))
    if (schema.length > 0) form.append('schema', JSON.stringify(schema))
    form.append('data', this.#file, this.#file.name)
    const { status, text } = await upload(`${await pathOf('import')}?${query}`, form, this.#signal(), this.#progress())
    const answer = objectIn(text)
    if (status !== 200) throw new Error(asText(answer['status'], asText(answer['error'], text)))
    await this.#showImported(asText(answer['location'], query.get('name') ?? ''), answer)
  }

  async #showImported(table: string, answer: Readonly<Record<string, unknown>>): Promise<void> {
    const [stored, rejected] = [asNumber(answer['rowsImported']), asNumber(answer['rowsRejected'])]
    const columns = asList(answer['columns']).map((column) => {
      const { name, type, errors } = isObject(column) ? column : {}
      return [asText(name), asText(type), grouped(asNumber(errors))]
    })
    const warnings = asList(answer['warnings']).map((warning) =>
      element('p', { className: 'warning' }, String(warning)),
    )
    const query = `SELECT * FROM "${table.replaceAll('"', '""')}";`
    this.#result.replaceChildren(
      element(
        'p',
        { className: 'good' },
        `${grouped(stored)} rows stored in ${table}${rejected > 0 ? `, ${grouped(rejected)} rejected` : ''}.`,
      ),
      ...warnings,
      element('p', {}, element('a', { href: `#query=${encodeURIComponent(query)}` }, 'Query the table')),
      plainTable(['Column', 'Type', 'Errors'], columns, new Set([2])),
    )
    if (rejected > 0) await this.#showRejects(table)
    this.#imported()
  }

  /** The reasons are kept by the server. */
  async #showRejects(table: string): Promise<void> {
    const rows = await rowsOf(
      `SELECT line, reason FROM sys.rejects WHERE table_name = ${literal(table)} ORDER BY ts DESC LIMIT ${rejectsShown}`,
    )
    const lines = rows.map(([line, reason]) => [grouped(String(line)), String(reason)])
    this.#result.append(element('h3', {}, 'Rejected rows'), plainTable(['Line', 'Reason'], lines, new Set([0])))
  }

  // Line protocol --------------------------------------------------------------------------------------------------

  async #previewLines(): Promise<void> {
    const { text } = await beginningOf(this.#file)
    const lines = text.split('\n').slice(0, previewLines)
    const precisions: [string, string][] = [
      ['', 'ns, or as its digits tell'],
      ['u', 'µs'],
      ['ms', 'ms'],
      ['s', 's'],
    ]
    this.#form.replaceChildren(
      element('div', { className: 'fields' }, field('Unit of timestamps', choice('precision', precisions))),
      element('pre', { className: 'code', tabIndex: 0, ariaLabel: 'Preview' }, lines.join('\n')),
      element('div', { className: 'bar' }, this.#start),
    )
  }

  /** Each request is stored whole or not at all; the first one that is refused ends the import. */
  async #sendLines(): Promise<void> {
    const precision = new FormData(this.#form).get('precision')
    const query = typeof precision === 'string' && precision !== '' ? `?precision=${precision}` : ''
    const progress = this.#progress()
    let lines = 0
    let sent = 0
    for await (const block of lineBlocks(this.#file)) {
      const { status, text } = await upload(`../write${query}`, block.blob, this.#signal(), (share) =>
        progress((sent + share * block.blob.size) / this.#file.size),
      )
      if (status !== 204) {
        const answer = objectIn(text)
        const place = asNumber(answer['line'])
        const where = place > 0 ? `Line ${grouped(lines + place)}: ` : ''
        throw new Error(`${where}${asText(answer['message'], text)}\n${grouped(lines)} lines before it are stored.`)
      }
      lines += block.lines
      sent += block.blob.size
    }
    this.#result.replaceChildren(element('p', { className: 'good' }, `${grouped(lines)} lines stored.`))
    this.#imported()
  }

  // Both -----------------------------------------------------------------------------------------------------------

  async #run(send: () => Promise<void>): Promise<void> {
    this.#abort = new AbortController()
    this.#start.disabled = true
    try {
      await send()
    } catch (error) {
      this.#result.replaceChildren(element('p', { className: 'problem', role: 'alert' }, errorText(error)))
    } finally {
      this.#start.disabled = false
    }
  }

  #signal(): AbortSignal {
    return this.#abort?.signal ?? new AbortController().signal
  }

  #progress(): (share: number) => void {
    const bar = element('progress', { max: 1, value: 0, ariaLabel: 'Sent' })
    const text = element('output', { className: 'quiet' })
    this.#result.replaceChildren(
      element(
        'div',
        { className: 'bar' },
        bar,
        text,
        button('Cancel', () => this.#abort?.abort()),
      ),
    )
    return (share) => {
      bar.value = share
      text.textContent = share < 1 ? `${Math.floor(share * 100)} % sent` : 'sent; the server is storing the rows …'
    }
  }
}

function field(label: string, control: HTMLElement): HTMLElement {
  return element('label', { className: 'field' }, element('span', {}, label), control)
}

function choice(name: string, options: readonly (readonly [string, string])[]): HTMLSelectElement {
  return element('select', { name }, ...options.map(([value, text]) => element('option', { value }, text)))
}

function previewCell(text: string): HTMLElement {
  return text === '' ? element('td', { className: 'null' }, 'empty') : element('td', {}, text.slice(0, 200))
}

/** The first bytes of a file as text, decompressed. */
async function beginningOf(file: File): Promise<{ readonly text: string; readonly whole: boolean }> {
  const isPacked = /\.gz$/i.test(file.name)
  if (!isPacked) return { text: await file.slice(0, previewBytes).text(), whole: file.size <= previewBytes }
  const reader = file.stream().pipeThrough(new DecompressionStream('gzip')).getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return { text: text + decoder.decode(), whole: true }
    text += decoder.decode(value, { stream: true })
    if (text.length >= previewBytes) break
  }
  await reader.cancel()
  return { text, whole: false }
}

/** Cuts a file behind ends of lines. */
async function* lineBlocks(file: File): AsyncGenerator<{ readonly blob: Blob; readonly lines: number }> {
  let start = 0
  while (start < file.size) {
    const bytes = new Uint8Array(await file.slice(start, start + lineRequestBytes).arrayBuffer())
    const isLast = start + bytes.length >= file.size
    const end = isLast ? bytes.length : bytes.lastIndexOf(10) + 1
    if (end === 0) throw new Error(`A line is longer than ${sizeText(lineRequestBytes)}.`)
    let lines = 0
    for (let index = 0; index < end; index++) if (bytes[index] === 10) lines++
    if (isLast && bytes[end - 1] !== 10) lines++
    yield { blob: file.slice(start, start + end), lines }
    start += end
  }
}
