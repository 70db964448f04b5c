// The import view of the console: previews a dropped file, lets the user change column names and types, and uploads the
// file, showing the progress. CSV and Parquet files are sent to /imp, line protocol to /write in requests of whole
// lines. A Parquet file is also sent to the server for the preview, because the browser cannot read it (a large one
// only if the user asks for the preview). Rejected rows are listed with the reason. Dumps of SQLite are not imported
// here.

import { pathOf, upload } from './api.js'
import { type CsvPreview, previewCsv } from './csv-preview.js'
import { button, byId, element, errorText } from './dom.js'
import { type ColumnChoice, columnChoices, previewTable, schemaOf } from './import-columns.js'
import { asList, asNumber, asText, isObject, objectIn } from './json.js'
import { plainTable } from './table-details.js'
import { cellText, grouped, sizeText } from './values.js'

const previewBytes = 256 * 1024
const previewRows = 100
/** A Parquet file up to this size is sent for its preview without a question. */
const parquetPreviewBytes = 64 * 1024 * 1024
const lineRequestBytes = 4 * 1024 * 1024

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
  input.addEventListener('change', () => {
    take(input.files)
    // The same file may be chosen again, when it has been mended.
    input.value = ''
  })
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

/** One file from its preview to its result. */
class FileImport {
  readonly host = element('section', { className: 'import-card' })
  readonly #file: File
  readonly #kind: (typeof kinds)[number]['kind']
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
    this.#kind = kind
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault()
      void this.#run(kind === 'lines' ? () => this.#sendLines() : () => this.#sendFile())
    })
    this.#open()
  }

  #open(): void {
    if (this.#kind === 'csv') void this.#previewCsv().catch((error: unknown) => this.#refuse(error))
    else if (this.#kind === 'lines') void this.#previewLines().catch((error: unknown) => this.#refuse(error))
    else if (this.#kind === 'parquet') this.#openParquet()
    else this.#refuseDump()
  }

  /** The file has no preview, so there is nothing to fill in. */
  #refuse(error: unknown): void {
    this.#result.replaceChildren()
    const other = button('Choose another file', () => byId('import-file', HTMLInputElement).click())
    const again = button('Try again', () => this.#open())
    this.#form.replaceChildren(
      element('p', { className: 'problem', role: 'alert' }, errorText(error)),
      element('div', { className: 'bar' }, other, again),
    )
  }

  #refuseDump(): void {
    const text = 'Dumps of SQLite are imported by the command line tool: penstock import. '
    const link = element('a', { href: '/docs/sqlite.html', target: '_blank' }, 'How to do that')
    this.#form.replaceChildren(element('p', {}, text, link))
  }

  // CSV ------------------------------------------------------------------------------------------------------------

  async #previewCsv(): Promise<void> {
    const { text, whole } = await beginningOf(this.#file)
    const preview = previewCsv(text, whole)
    this.#columns = columnChoices(preview.names, preview.types)
    this.#form.replaceChildren(
      this.#csvFields(preview),
      previewTable(this.#columns, preview.rows, false),
      element('div', { className: 'bar' }, this.#start),
    )
  }

  #csvFields({ delimiter, hasHeader, rows }: CsvPreview): HTMLElement {
    const delimiters: Record<string, string> = { ',': 'comma', '\t': 'tab', ';': 'semicolon', '|': 'pipe' }
    const found = `${delimiters[delimiter] ?? delimiter}-separated, ${hasHeader ? 'with' : 'without'} a header; the first ${rows.length} rows`
    const first = field(
      'First line',
      choice('forceHeader', [
        ['', 'found by the server'],
        ['true', 'is a header'],
      ]),
    )
    const times = this.#columns.filter(({ found: type }) => /^TIMESTAMP|^LONG$|^VARCHAR$/.test(type))
    return element(
      'div',
      { className: 'fields' },
      ...this.#tableFields(times),
      first,
      element(
        'p',
        { className: 'quiet' },
        `${found}. A type that you choose is binding; the server finds the others in the whole file.`,
      ),
    )
  }

  // Parquet --------------------------------------------------------------------------------------------------------

  /** A large file is sent twice only if the user wants that. */
  #openParquet(): void {
    if (this.#file.size <= parquetPreviewBytes) {
      this.#abort = new AbortController()
      this.#previewParquet().catch((error: unknown) => this.#refuse(error))
      return
    }
    const look = button('Show columns and rows', () => void this.#run(() => this.#previewParquet()), {
      title: `Sends the file, ${sizeText(this.#file.size)}, and stores nothing`,
    })
    const note = 'The columns have the names and types of the file, unless you look at them first.'
    this.#form.replaceChildren(
      element('div', { className: 'fields' }, ...this.#tableFields([]), element('p', { className: 'quiet' }, note)),
      element('div', { className: 'bar' }, this.#start, look),
    )
  }

  async #previewParquet(): Promise<void> {
    const form = new FormData()
    form.append('data', this.#file, this.#file.name)
    const path = `${await pathOf('import')}?fmt=json&preview=${previewRows}`
    const progress = this.#progress('the server is reading it …')
    const { status, text } = await upload(path, form, this.#signal(), progress)
    const answer = objectIn(text)
    if (status !== 200) throw new Error(asText(answer['status'], asText(answer['error'], text)))
    const found = asList(answer['columns']).map((column) => (isObject(column) ? column : {}))
    this.#columns = columnChoices(
      found.map(({ name }) => asText(name)),
      found.map(({ type }) => asText(type)),
    )
    const rows = asList(answer['dataset']).map((row) => asList(row).map(cellText))
    const times = this.#columns.filter(({ found: type }) => /^TIMESTAMP|^LONG$|^DATE$|^VARCHAR$/.test(type))
    const count = asNumber(answer['rowCount'])
    const note = `Parquet, ${grouped(count)} ${count === 1 ? 'row' : 'rows'}; the first ${rows.length}. The types are those of the file, unless you choose others.`
    this.#result.replaceChildren()
    this.#form.replaceChildren(
      element('div', { className: 'fields' }, ...this.#tableFields(times), element('p', { className: 'quiet' }, note)),
      previewTable(this.#columns, rows, true),
      element('div', { className: 'bar' }, this.#start),
    )
  }

  // CSV and Parquet ------------------------------------------------------------------------------------------------

  /** `times`: the columns that may be the designated timestamp. */
  #tableFields(times: readonly ColumnChoice[]): HTMLElement[] {
    const table = this.#file.name.replace(/\.gz$/i, '').replace(/\.[^.]*$/, '')
    return [
      field('Table', element('input', { name: 'name', value: table, required: true, spellcheck: false })),
      field(
        'Designated timestamp',
        choice('timestamp', [
          ['*', 'found by the server'],
          ['', 'none'],
          ...times.map(({ name }): [string, string] => [name, name]),
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
        'Existing rows',
        choice('overwrite', [
          ['', 'stay'],
          ['true', 'are replaced'],
        ]),
      ),
    ]
  }

  async #sendFile(): Promise<void> {
    const values = new FormData(this.#form)
    const query = new URLSearchParams({ fmt: 'json' })
    for (const [key, value] of values) {
      if (typeof value !== 'string' || (key === 'timestamp' ? value === '*' : value === '')) continue
      const renamed = key === 'timestamp' ? this.#columns.find(({ name }) => name === value)?.as : undefined
      query.set(key, renamed ?? value)
    }
    const form = new FormData()
    const schema = schemaOf(this.#columns)
    if (schema.length > 0) form.append('schema', JSON.stringify(schema))
    form.append('data', this.#file, this.#file.name)
    const { status, text } = await upload(`${await pathOf('import')}?${query}`, form, this.#signal(), this.#progress())
    const answer = objectIn(text)
    if (status !== 200) throw new Error(asText(answer['status'], asText(answer['error'], text)))
    this.#showImported(asText(answer['location'], query.get('name') ?? ''), answer)
  }

  #showImported(table: string, answer: Readonly<Record<string, unknown>>): void {
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
    if (rejected > 0) this.#showRejects(asList(answer['rejects']), rejected)
    this.#imported()
  }

  /** The response has the first ones; sys.rejects has all. */
  #showRejects(listed: readonly unknown[], count: number): void {
    const lines = listed.map((entry) => {
      const { line, column, reason } = isObject(entry) ? entry : {}
      return [grouped(asNumber(line)), asText(column), asText(reason)]
    })
    const more = count > lines.length ? `, the first ${lines.length}` : ''
    const place = this.#kind === 'parquet' ? 'Row' : 'Line'
    this.#result.append(
      element('h3', {}, `Rejected rows${more}`),
      plainTable([place, 'Column', 'Reason'], lines, new Set([0])),
    )
  }

  // Line protocol --------------------------------------------------------------------------------------------------

  async #previewLines(): Promise<void> {
    const { text } = await beginningOf(this.#file)
    const lines = text.split('\n').slice(0, previewRows)
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

  #progress(then = 'the server is storing the rows …'): (share: number) => void {
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
      text.textContent = share < 1 ? `${Math.floor(share * 100)} % sent` : `sent; ${then}`
    }
  }
}

function field(label: string, control: HTMLElement): HTMLElement {
  return element('label', { className: 'field' }, element('span', {}, label), control)
}

function choice(name: string, options: readonly (readonly [string, string])[]): HTMLSelectElement {
  return element('select', { name }, ...options.map(([value, text]) => element('option', { value }, text)))
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
