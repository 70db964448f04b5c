// Decodes a dump block by block: parses schema statements one at a time and scans the rows of INSERT bytewise.
//
//   statement  CREATE TABLE is recorded; INSERT starts rows; CREATE VIEW and INDEX of one column are passed on; PRAGMA,
//              statements of transactions and maintenance, and SQLite's internal tables (sqlite_sequence, sqlite_stat1)
//              are skipped; anything else is reported
//   rows       `(..)` after `(..)` up to the semicolon; a statement may have any number
//
// A statement or row that is cut by the end of a block is read again from its start with the next block.

import { nonNull } from '../../engine/base/assert.js'
import type { DecoderOptions, DumpEvent } from './messages.js'
import { tableNameOf } from './names.js'
import { ScanError, ScannedRow, scanRow } from './row-scan.js'
import { readSchemaStatement } from './schema-statements.js'
import { linesBetween, readName, skipBlanks, statementEnd } from './source.js'
import { TableLoad } from './table-load.js'

/** A longer row or statement ends the import. */
const statementBytesMax = 128 * 1024 * 1024
const passedOver = /^(pragma|begin|commit|end|analyze|vacuum|reindex|savepoint|release)\b/i
const ownTables = /^sqlite_(sequence|stat\d*)$/i

/** An error that ends the import. */
export class DumpError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'DumpError'
  }
}

interface Insert {
  /** Null: its rows are skipped. */
  readonly load: TableLoad | null
  readonly order: Int32Array
  /** The bytes up to the first row. */
  readonly header: Buffer
}

export class DumpDecoder {
  private readonly options: DecoderOptions
  private readonly loads = new Map<string, TableLoad>()
  private readonly numbers = new Map<TableLoad, number>()
  private readonly names = new Set<string>()
  private readonly row = new ScannedRow()
  private readonly indexes: { readonly line: number; readonly table: string; readonly columns: readonly string[] }[] =
    []
  private waiting: Buffer[] = []
  private waitingBytes = 0
  /** Size of the unread tail that was not enough for a statement or row. */
  private tailBytes = 0
  private line = 1
  private counted = 0
  private insert: Insert | null = null
  private inRows: 'no' | 'row' | 'separator' = 'no'
  private last: TableLoad | null = null
  private nextNumber = 0
  private events: DumpEvent[] = []

  constructor(options: DecoderOptions) {
    this.options = options
  }

  /** Throws DumpError. */
  decode(block: Uint8Array, last: boolean): readonly DumpEvent[] {
    this.waiting.push(Buffer.from(block.buffer, block.byteOffset, block.length))
    this.waitingBytes += block.length
    // Waits for twice as many bytes, so that a long row is not scanned again for every block.
    if (!last && this.tailBytes > 0 && this.waitingBytes < this.tailBytes * 2) return []
    const bytes = this.waiting.length === 1 ? nonNull(this.waiting[0]) : Buffer.concat(this.waiting)
    this.counted = 0
    const end = this.readAll(bytes, last)
    // Lines that are read again are counted again.
    if (this.counted > end) this.line -= linesBetween(bytes, end, this.counted)
    else this.line += linesBetween(bytes, this.counted, end)
    const tail = bytes.subarray(end)
    if (tail.length > statementBytesMax)
      throw new DumpError(`line ${this.line}: a statement is longer than ${statementBytesMax} bytes`)
    this.waiting = [tail]
    this.waitingBytes = tail.length
    this.tailBytes = tail.length
    if (last) this.finish(tail)
    const { events } = this
    this.events = []
    return events
  }

  private readAll(bytes: Buffer, last: boolean): number {
    let at = 0
    for (;;) {
      const next = this.inRows === 'no' ? this.readStatement(bytes, at, last) : this.readRows(bytes, at, last)
      // No progress: the rest is the beginning of a row.
      if (next <= at) return at
      at = next
      if (at >= bytes.length) return at
    }
  }

  private lineAt(bytes: Buffer, at: number): number {
    this.line += linesBetween(bytes, this.counted, at)
    this.counted = at
    return this.line
  }

  /** Returns the offset after the statement or, for INSERT, after its head; -1 when more bytes are needed. */
  private readStatement(bytes: Buffer, from: number, last: boolean): number {
    const at = skipBlanks(bytes, from, last)
    if (at < 0 || at >= bytes.length) return at
    if (bytes[at] === 0x3b) return at + 1
    const { insert } = this
    if (insert !== null && startsWith(bytes, at, insert.header)) {
      this.inRows = 'row'
      return at + insert.header.length
    }
    const word = readName(bytes, at)
    if (word === null && !last) return -1
    if (word?.text.toLowerCase() === 'insert') return this.readInsert(bytes, at, last)
    const end = statementEnd(bytes, at, last)
    if (end < 0) return -1
    const line = this.lineAt(bytes, at)
    this.statement(bytes.toString('utf8', at, end), line)
    return end
  }

  private statement(text: string, line: number): void {
    if (passedOver.test(text)) return
    if (/^create\b/i.test(text)) {
      this.create(text, line)
      return
    }
    if (/^rollback\b/i.test(text)) {
      this.report(line, '', 'the dump is incomplete: SQLite could not read the whole database (ROLLBACK)', 0)
      return
    }
    if (/^delete\s+from\s+"?sqlite_/i.test(text)) return
    this.report(line, '', `unsupported statement: ${text.slice(0, 60).replace(/\s+/g, ' ')}`, 0)
  }

  private create(text: string, line: number): void {
    const statement = readSchemaStatement(text)
    switch (statement.kind) {
      case 'table':
        if (this.takes(statement.table.name)) this.addTable(statement.table, line)
        return
      case 'view':
        this.events.push({ ...statement, line })
        return
      case 'index':
        this.indexes.push({ line, table: statement.table, columns: statement.columns })
        return
      case 'other':
        this.report(line, '', `CREATE ${statement.what.toUpperCase()} is not supported`, 0)
    }
  }

  private takes(name: string): boolean {
    const { tables } = this.options
    if (ownTables.test(name)) return false
    return tables.length === 0 || tables.some((wanted) => wanted.toLowerCase() === name.toLowerCase())
  }

  private addTable(table: TableLoad['source'], line: number): void {
    const name = tableNameOf(table.name, this.names)
    this.names.add(name.toLowerCase())
    const load: TableLoad = new TableLoad(table, name, line, this.options, {
      rows: (rows) => this.events.push({ kind: 'rows', table: this.numberOf(load), rows }),
      refuse: (at, reason) => this.report(at, load.source.name, reason, 1),
      note: (at, reason) => this.report(at, table.name, reason, 0),
    })
    if (name !== table.name) this.report(line, table.name, `the table becomes "${name}"`, 0)
    this.loads.set(table.name.toLowerCase(), load)
  }

  /** Numbers tables in the order in which they are resolved. */
  private numberOf(load: TableLoad): number {
    return this.numbers.get(load) ?? -1
  }

  private openLoad(load: TableLoad): void {
    if (load.state !== 'sampling') return
    this.numbers.set(load, this.nextNumber++)
    load.open()
  }

  private report(line: number, table: string, reason: string, rows: number): void {
    if (rows > 0 && !this.options.skipRows) throw new DumpError(`line ${line}, table ${table}: ${reason}`)
    this.events.push({ kind: 'report', report: { line, table, reason }, rows })
  }

  /** INSERT [OR word] INTO name [(columns)] VALUES */
  private readInsert(bytes: Buffer, from: number, last: boolean): number {
    const line = this.lineAt(bytes, from)
    const words: string[] = []
    let at = from
    let name: string | null = null
    let columns: string[] | null = null
    for (;;) {
      at = skipBlanks(bytes, at)
      if (at < 0) return last ? this.skipStatement(bytes, from, line) : -1
      if (bytes[at] === 0x28) {
        const list = readList(bytes, at)
        if (list === null) return last ? this.skipStatement(bytes, from, line) : -1
        columns = list.names
        at = list.end
        continue
      }
      const word = readName(bytes, at)
      if (word === null) return last ? this.skipStatement(bytes, from, line) : -1
      if (word === undefined) return this.skipInsert(bytes, from, line, last)
      at = word.end
      const plain = word.text.toLowerCase()
      if (name === null && words.at(-1) === 'into') name = bytes[at] === 0x2e ? '' : word.text
      else if (name === '') name = word.text
      else if (name !== null && plain === 'values') break
      else if (name !== null) return this.skipInsert(bytes, from, line, last)
      if (bytes[at] === 0x2e) at++
      words.push(plain)
    }
    return this.openInsert(bytes, from, at, { name, columns, line })
  }

  private openInsert(
    bytes: Buffer,
    from: number,
    to: number,
    {
      name,
      columns,
      line,
    }: { readonly name: string; readonly columns: readonly string[] | null; readonly line: number },
  ): number {
    const load = this.loads.get(name.toLowerCase()) ?? null
    if (load === null) this.unknownTable(name, line)
    if (load !== this.last && this.last !== null) {
      this.openLoad(this.last)
      this.last.flush()
    }
    this.last = load
    const order = load?.order(columns) ?? new Int32Array(0)
    this.insert = { load, order, header: Buffer.from(bytes.subarray(from, to)) }
    this.inRows = 'row'
    return to
  }

  private unknownTable(name: string, line: number): void {
    if (/^sqlite_(schema|master)$/i.test(name)) this.report(line, '', 'virtual tables are not supported', 0)
    else if (this.takes(name)) this.report(line, name, 'rows of a table whose CREATE TABLE is missing', 0)
  }

  private skipInsert(bytes: Buffer, from: number, line: number, last: boolean): number {
    const end = statementEnd(bytes, from, last)
    if (end < 0) return -1
    this.report(
      line,
      '',
      `INSERT without VALUES is not supported: ${bytes.toString('utf8', from, Math.min(end, from + 60))}`,
      0,
    )
    return end
  }

  private skipStatement(bytes: Buffer, from: number, line: number): number {
    this.report(line, '', `the dump ends within a statement: ${bytes.toString('utf8', from, from + 60)}`, 0)
    return bytes.length
  }

  /** Reads rows as long as they are complete. */
  private readRows(bytes: Buffer, from: number, last: boolean): number {
    let at = from
    const { insert, row } = this
    const load = insert?.load ?? null
    for (;;) {
      const next = skipBlanks(bytes, at)
      if (next < 0) return at
      const byte = bytes[next]
      if (this.inRows === 'separator') {
        if (byte === 0x2c) this.inRows = 'row'
        else if (byte === 0x3b) this.inRows = 'no'
        else return this.badRow(bytes, next, 'a comma or a semicolon is missing after a row', last)
        at = next + 1
        if (byte === 0x3b) return at
        continue
      }
      if (byte !== 0x28) return this.badRow(bytes, next, 'a row begins with a parenthesis', last)
      let end: number
      try {
        end = scanRow(bytes, next, row)
      } catch (error) {
        if (!(error instanceof ScanError)) throw error
        return this.badRow(bytes, next, error.message, last)
      }
      if (end < 0) return at
      if (load !== null) {
        const line = this.lineAt(bytes, next)
        if (load.state === 'sampling') this.sampled(load, bytes, next, end, line)
        else load.take(bytes, next, end, row, insert?.order as Int32Array, line)
      }
      this.inRows = 'separator'
      at = end
    }
  }

  /**
   * Adds the row to the sample. It may be the one that determines the types, and the table then needs its number.
   */
  private sampled(load: TableLoad, bytes: Buffer, from: number, to: number, line: number): void {
    if (!this.numbers.has(load)) this.numbers.set(load, this.nextNumber)
    load.take(bytes, from, to, this.row, this.insert?.order as Int32Array, line)
    if (load.state === 'sampling') this.numbers.delete(load)
    else this.nextNumber++
  }

  private badRow(bytes: Buffer, at: number, reason: string, last: boolean): number {
    const end = statementEnd(bytes, at, last)
    if (end < 0) return -1
    this.report(this.lineAt(bytes, at), this.insert?.load?.source.name ?? '', reason, 1)
    this.inRows = 'no'
    return end
  }

  private finish(tail: Buffer): void {
    if (this.inRows === 'row' || tail.length > 0) {
      const what = this.inRows === 'no' ? 'a statement' : 'a row'
      this.report(this.line, this.insert?.load?.source.name ?? '', `the dump ends within ${what}`, 0)
    }
    for (const load of this.loads.values()) {
      this.openLoad(load)
      load.flush()
    }
    for (const index of this.indexes) this.passIndex(index)
  }

  /** Passes on single-column indexes, which may apply here; others have no counterpart. */
  private passIndex({ line, table, columns }: (typeof this.indexes)[number]): void {
    const load = this.loads.get(table.toLowerCase())
    const [column] = columns
    if (load === undefined || load.state !== 'open' || column === undefined || columns.length > 1) return
    this.events.push({ kind: 'index', line, table: this.numberOf(load), column })
  }
}

function startsWith(bytes: Buffer, at: number, header: Buffer): boolean {
  const { length } = header
  if (at + length > bytes.length) return false
  for (let index = 0; index < length; index++) if (bytes[at + index] !== header[index]) return false
  return true
}

/** Reads names between parentheses; null when more bytes are needed. */
function readList(bytes: Buffer, from: number): { readonly names: string[]; readonly end: number } | null {
  const names: string[] = []
  for (let at = from + 1; ; ) {
    at = skipBlanks(bytes, at)
    if (at < 0) return null
    if (bytes[at] === 0x29) return { names, end: at + 1 }
    if (bytes[at] === 0x2c) {
      at++
      continue
    }
    const name = readName(bytes, at)
    if (name === null) return null
    if (name === undefined) at++
    else {
      names.push(name.text)
      at = name.end
    }
  }
}
