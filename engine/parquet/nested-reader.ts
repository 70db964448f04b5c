// NestedReader: reads a nested column of a Parquet file that another program wrote, whose rows are JSON texts. Each leaf
// of the column is a sequence of values with repetition and definition levels, cut into pages of its own. A row is put
// together from the values of all leaves, which must agree about its lists.
//
//   list             array                struct   object with all its fields
//   map              object if its keys are texts, else an array of arrays [key, value]
//   text, UUID       string               BINARY   string of hexadecimal digits
//   dates and times  string, as in results of the server
//   NaN, infinities  null, as is what is NULL

import { budgets } from '../memory/budgets.js'
import { Scratch } from '../storage/part/part-scratch.js'
import type { DataType } from '../types/column-types.js'
import { displayText } from '../types/convert.js'
import type { Value } from '../types/value.js'
import { ColumnReader, type ColumnTools, type RowReader } from './column-reader.js'
import { asExact } from './columns.js'
import type { ForeignChunk } from './footer.js'
import { type ForeignColumn, leavesBelow, type NestedNode } from './foreign-column.js'
import type { ForeignFile, ForeignPlace } from './foreign-file.js'
import type { ListPage } from './lists.js'

/** The values at an address, by index. */
export type ValuesOf = (type: DataType, address: number) => (index: number) => Value

/** Rows that are decoded at once, unless they are long. */
const rowsAtOnce = 1024
const charactersAtOnce = 1024 * 1024
/**
 * Limits of a row: values of all leaves, and characters of its text. A page of few bytes may repeat a long text millions
 * of times.
 */
const rowValuesMax = 4 * 1024 * 1024
const rowCharactersMax = 32 * 1024 * 1024

/** What the current row has so far. Throws SqlError beyond the limits. */
class RowSize {
  readonly #file: ForeignFile
  #values = 0
  characters = 0

  constructor(file: ForeignFile) {
    this.#file = file
  }

  begin(): void {
    this.#values = 0
    this.characters = 0
  }

  add(values: number, characters: number, place: ForeignPlace): void {
    this.#values += values
    this.characters += characters
    if (this.#values > rowValuesMax) throw this.#file.error(`a row has more than ${rowValuesMax} values`, place)
    if (this.characters > rowCharactersMax)
      throw this.#file.error(`a row has more than ${rowCharactersMax} characters of JSON`, place)
  }
}

export class NestedReader implements RowReader {
  readonly column: ForeignColumn
  readonly #file: ForeignFile
  readonly #scratch: Scratch
  readonly #root: NestedNode
  readonly #size: RowSize
  /** By index of the leaf. */
  readonly #leaves: ReadonlyMap<number, LeafRows>
  readonly #below = new Map<NestedNode, readonly LeafRows[]>()
  #place: ForeignPlace = {}
  #rowsLeft = 0
  #address = 0
  #rows = 0
  #taken = 0

  constructor(tools: ColumnTools, column: ForeignColumn, root: NestedNode, valuesOf: ValuesOf) {
    this.column = column
    this.#file = tools.file
    this.#scratch = new Scratch(tools.memory, tools.allocator, budgets.queries)
    this.#root = root
    this.#size = new RowSize(tools.file)
    this.#leaves = new Map(
      leavesBelow(root).map((leaf) => [leaf.leaf, new LeafRows(tools, asExact(leaf), valuesOf, this.#size)]),
    )
  }

  open(chunks: readonly ForeignChunk[], rows: number, place: ForeignPlace): void {
    for (const [index, leaf] of [...this.#leaves.values()].entries()) leaf.open(chunks[index], rows, place)
    this.#place = place
    this.#rowsLeft = rows
    this.#rows = 0
    this.#taken = 0
  }

  get ready(): number {
    return this.#rows - this.#taken
  }

  take(rows: number): number {
    const address = this.#address + this.#taken * 8
    this.#taken += rows
    return address
  }

  load(): void {
    if (this.#rowsLeft === 0) throw this.#file.error('the column has fewer rows than its row group', this.#place)
    const texts: (Buffer | null)[] = []
    let characters = 0
    while (this.#rowsLeft > 0 && texts.length < rowsAtOnce && characters < charactersAtOnce) {
      const text = this.#row()
      texts.push(text === null ? null : Buffer.from(text))
      // Those of fields that are not shown, too.
      characters += this.#size.characters
      this.#rowsLeft--
    }
    this.#write(texts)
    this.#rows = texts.length
    this.#taken = 0
  }

  release(): void {
    for (const leaf of this.#leaves.values()) leaf.release()
    this.#scratch.release()
  }

  #row(): string | null {
    this.#size.begin()
    for (const leaf of this.#leaves.values()) leaf.nextRow()
    const text = this.#text(this.#root)
    for (const leaf of this.#leaves.values()) if (!leaf.isAtEnd) throw this.#disagreement()
    return text
  }

  #write(texts: readonly (Buffer | null)[]): void {
    const { memory } = this.#scratch
    const bytes = texts.reduce((sum, text) => sum + (text?.length ?? 0), 0)
    let at = this.#scratch.room('texts', bytes)
    this.#address = this.#scratch.room('rows', texts.length * 8)
    for (const [row, text] of texts.entries()) {
      const entry = (this.#address >>> 2) + row * 2
      memory.u32[entry] = at
      memory.i32[entry + 1] = text?.length ?? -1
      if (text !== null) memory.u8.set(text, at)
      at += text?.length ?? 0
    }
  }

  /** Null: NULL. Takes the values of the node from its leaves. */
  #text(node: NestedNode): string | null {
    // A comma, and brackets.
    this.#size.add(0, node.kind === 'leaf' ? 1 : 3, this.#place)
    switch (node.kind) {
      case 'leaf':
        return this.#leaf(node.column).take()
      case 'struct':
        return this.#struct(node)
      case 'list': {
        const items = this.#items(node, () => this.#text(node.element) ?? 'null')
        return items === null ? null : `[${items.join()}]`
      }
      case 'map':
        return this.#map(node)
    }
  }

  #struct(node: Extract<NestedNode, { kind: 'struct' }>): string | null {
    if (this.#levelOf(node) < node.exists) {
      this.#skip(node)
      return null
    }
    const members: string[] = []
    for (const { name, node: field } of node.fields) {
      const text = field === null ? null : this.#text(field)
      if (name === null) continue
      const key = JSON.stringify(name)
      this.#size.add(0, key.length + (field === null ? 6 : 1), this.#place)
      members.push(`${key}:${text ?? 'null'}`)
    }
    return `{${members.join()}}`
  }

  #map(node: Extract<NestedNode, { kind: 'map' }>): string | null {
    const hasTexts = node.key.kind === 'leaf' && node.key.column.type.name === 'VARCHAR'
    const items = this.#items(node, () => {
      const key = this.#text(node.key)
      const value = (node.value === null ? null : this.#text(node.value)) ?? 'null'
      // Others may be NaN.
      if (key === null && hasTexts) throw this.#file.error('a key of a map is NULL', this.#place)
      return hasTexts ? `${key}:${value}` : `[${key ?? 'null'},${value}]`
    })
    if (items === null) return null
    return hasTexts ? `{${items.join()}}` : `[${items.join()}]`
  }

  /** The elements of a list or map; null: it is NULL. `item` takes the values of one. */
  #items(node: Extract<NestedNode, { kind: 'list' | 'map' }>, item: () => string): readonly string[] | null {
    const level = this.#levelOf(node)
    if (level < node.filled) {
      this.#skip(node)
      return level < node.exists ? null : []
    }
    const items = [item()]
    const first = this.#firstLeaf(node)
    while (!first.isAtEnd && first.repetition === node.repetition) items.push(item())
    return items
  }

  /** A NULL, or an empty list, is one value of each leaf below it. */
  #skip(node: NestedNode): void {
    for (const leaf of this.#leavesOf(node)) {
      if (leaf.isAtEnd) throw this.#disagreement()
      leaf.take()
    }
  }

  #levelOf(node: NestedNode): number {
    const leaf = this.#firstLeaf(node)
    if (leaf.isAtEnd) throw this.#disagreement()
    return leaf.definition
  }

  #firstLeaf(node: NestedNode): LeafRows {
    const [first] = this.#leavesOf(node)
    if (first === undefined) throw this.#disagreement()
    return first
  }

  #leavesOf(node: NestedNode): readonly LeafRows[] {
    const known = this.#below.get(node) ?? leavesBelow(node).flatMap(({ leaf }) => this.#leaves.get(leaf) ?? [])
    this.#below.set(node, known)
    return known
  }

  #leaf({ leaf }: ForeignColumn): LeafRows {
    const found = this.#leaves.get(leaf)
    if (found === undefined || found.isAtEnd) throw this.#disagreement()
    return found
  }

  #disagreement(): Error {
    return this.#file.error('the parts of a nested column have different numbers of values', this.#place)
  }
}

/** The values of one leaf, row by row. */
class LeafRows {
  readonly #reader: ColumnReader
  readonly #file: ForeignFile
  readonly #column: ForeignColumn
  readonly #scratch: Scratch
  readonly #size: RowSize
  #place: ForeignPlace = {}
  // Of the page, the addresses of its levels; 0: the column has none.
  #repetitions = 0
  #definitions = 0
  #levels = 0
  #valueAt: (index: number) => Value = () => null
  /** The next value among all, and among those that are present. */
  #next = 0
  #present = 0
  // Of the row, by value:
  #rowRepetitions: number[] = []
  #rowDefinitions: number[] = []
  #texts: (string | null)[] = []
  #at = 0

  constructor(tools: ColumnTools, column: ForeignColumn, valuesOf: ValuesOf, size: RowSize) {
    const { memory, allocator, file } = tools
    this.#file = file
    this.#column = column
    this.#size = size
    this.#scratch = new Scratch(memory, allocator, budgets.queries)
    this.#reader = new ColumnReader(tools, column, ({ repetition, definition, levels, values }: ListPage) => {
      // The levels are in memory that all columns share.
      const copied = (name: string, address: number): number => {
        if (address === 0) return 0
        const target = this.#scratch.room(name, levels * 4)
        memory.copy(target, address, address + levels * 4)
        return target
      }
      this.#repetitions = copied('repetition', repetition)
      this.#definitions = copied('definition', definition)
      this.#levels = levels
      this.#valueAt = valuesOf(column.type, values)
      this.#next = 0
      this.#present = 0
    })
  }

  open(chunk: ForeignChunk | undefined, rows: number, place: ForeignPlace): void {
    this.#reader.open(chunk === undefined ? [] : [chunk], rows, place)
    this.#place = place
    this.#levels = 0
    this.#next = 0
  }

  release(): void {
    this.#reader.release()
    this.#scratch.release()
  }

  /** Whether all values of the row are taken. */
  get isAtEnd(): boolean {
    return this.#at === this.#texts.length
  }

  /** Levels of the next value of the row. */
  get repetition(): number {
    return this.#rowRepetitions[this.#at] ?? 0
  }

  get definition(): number {
    return this.#rowDefinitions[this.#at] ?? 0
  }

  /** JSON; null: NULL. */
  take(): string | null {
    return this.#texts[this.#at++] ?? null
  }

  /** Reads the values of the next row: up to the next one whose repetition level is 0. */
  nextRow(): void {
    this.#rowRepetitions = []
    this.#rowDefinitions = []
    this.#texts = []
    this.#at = 0
    if (!this.#hasPage()) throw this.#file.error('the column has fewer rows than its row group', this.#place)
    if (this.#level(this.#repetitions, 0) !== 0)
      throw this.#file.error('a list element precedes the first row', this.#place)
    do this.#add()
    while (this.#hasPage() && this.#level(this.#repetitions, 0) !== 0)
  }

  #hasPage(): boolean {
    while (this.#next === this.#levels && this.#reader.hasMore) this.#reader.load()
    return this.#next < this.#levels
  }

  #add(): void {
    const { definition: whole, type } = this.#column
    const definition = this.#level(this.#definitions, whole)
    const isPresent = definition === whole
    const text = isPresent ? jsonOf(this.#valueAt(this.#present), type) : null
    this.#size.add(1, text?.length ?? 4, this.#place)
    this.#rowRepetitions.push(this.#level(this.#repetitions, 0))
    this.#rowDefinitions.push(definition)
    this.#texts.push(text)
    if (isPresent) this.#present++
    this.#next++
  }

  /** The next value's; `other`: where the column has no such levels. */
  #level(levels: number, other: number): number {
    return levels === 0 ? other : this.#scratch.memory.u32[(levels >>> 2) + this.#next]!
  }
}

function jsonOf(value: Value, type: DataType): string | null {
  if (value === null) return null
  switch (type.name) {
    case 'BOOLEAN':
    case 'BYTE':
    case 'SHORT':
    case 'INT':
    case 'LONG':
    case 'DECIMAL':
      return displayText(value, type)
    case 'FLOAT':
    case 'DOUBLE':
      return Number.isFinite(value) ? displayText(value, type) : null
    case 'BINARY':
      return value instanceof Uint8Array ? `"${Buffer.from(value).toString('hex')}"` : null
    default:
      return JSON.stringify(displayText(value, type))
  }
}
