// Generates random requests for the deterministic simulation, each in two forms: as a message to the engine, and as
// steps of the model that predicts the result (model.ts).

import { lineFlags, precisionCodes, type RingHeader, ringKinds } from '../../../engine/memory/ring.js'
import type { RowsInput, SchemaChange, ToWriter } from '../../../engine/storage/jobs/messages.js'
import {
  type ColumnSchema,
  liveColumns,
  type TableSchema,
  type TableVersion,
} from '../../../engine/storage/schema/schema.js'
import { type ColumnType, dataType } from '../../../engine/types/column-types.js'
import type { Value } from '../../../engine/types/value.js'
import type { Random } from '../random.js'
import type { Cell, ModelChange, RowSpec, Step } from './model.js'

/**
 * Tables of line protocol; `plain` has no designated timestamp and takes inserts only, `upsert` may have DEDUP keys.
 */
const lineTables = ['alpha', 'beta', 'gamma', 'upsert'] as const
const optionalColumns = ['s', 'sa', 'd', 'da', 'v', 'va', 'b', 'ba', 'l', 'la'] as const

/** By the first letter of a column's name: a name never changes its type. */
const typesByLetter: Record<string, ColumnType> = {
  n: 'LONG',
  l: 'LONG',
  s: 'SYMBOL',
  d: 'DOUBLE',
  v: 'VARCHAR',
  b: 'BOOLEAN',
}

const firstMicros = 1_704_067_200_000_000
const dayMicros = 86_400_000_000

/** Numbers that all requests of a seed share. */
export interface RequestState {
  readonly random: Random
  nextRequestId: number
  nextRow: number
  lastMicros: number
}

export function newRequestState(random: Random): RequestState {
  return { random, nextRequestId: 1, nextRow: 1, lastMicros: firstMicros }
}

export interface Request {
  readonly requestId: number
  /** Requests of one lane are served in their order. */
  readonly lane: 'lines' | 'command'
  readonly text: string
  /** Atomic each; a crash may leave the first few of them. */
  readonly steps: readonly Step[]
  /** The engine must answer with an error; undefined: the model decides. */
  readonly refused: boolean | undefined
  readonly blocks: readonly { readonly header: RingHeader; readonly payload: Uint8Array }[]
  readonly message: ToWriter | undefined
}

function typeOf(name: string): ColumnType {
  const type = typesByLetter[name.charAt(0)]
  if (type === undefined) throw new Error(`no type for column ${name}`)
  return type
}

function nextMicros(state: RequestState): number {
  const { random } = state
  const choice = random.next()
  if (choice < 0.01) return firstMicros - random.below(3) * dayMicros
  if (choice < 0.3) return state.lastMicros - random.below(20) * 1_000_000
  if (choice < 0.9) state.lastMicros += random.below(3) * 1_000_000
  return state.lastMicros
}

function randomCell({ random }: RequestState, type: ColumnType): Cell {
  switch (type) {
    case 'SYMBOL':
      return random.chance(0.05) ? `long-${'k'.repeat(20)}${random.below(9)}` : `k${random.below(40)}`
    case 'DOUBLE':
      return random.between(-1000, 1000) / 8
    case 'VARCHAR':
      return random.chance(0.05) ? 'y'.repeat(random.below(600)) : `text ${random.below(1000)}`
    case 'BOOLEAN':
      return random.chance(0.5)
    default:
      return random.between(-1_000_000, 1_000_000)
  }
}

// ---- line protocol
// ---------------------------------------------------------------------------------------------------

interface Line {
  readonly text: string
  /** Undefined: a bad line. */
  readonly row: RowSpec | undefined
}

export function linesRequest(state: RequestState): Request {
  const { random } = state
  const atomic = random.chance(0.6)
  const skipBadLines = random.chance(0.5)
  const badness = random.chance(0.12) ? 0.2 : 0
  const blocks: Line[][] = []
  const spread = random.pick([1, 1, lineTables.length])
  const first = random.below(lineTables.length)
  // Lines of most requests have one shape, as in the field; of some, each has its own.
  const shape = random.chance(0.8) ? randomShape(state) : undefined
  for (let count = random.pick([1, 1, 1, 1, 2, 3]); count > 0; count--) {
    const lines: Line[] = []
    for (let left = random.between(1, random.pick([1, 2, 6])); left > 0; left--) {
      const table = lineTables[(first + random.below(spread)) % lineTables.length] as string
      lines.push(random.chance(badness) ? badLine(state, table) : goodLine(state, table, shape ?? randomShape(state)))
    }
    blocks.push(lines)
  }
  const { steps, refused } = stepsOfLines(blocks, atomic, skipBadLines)
  const requestId = state.nextRequestId++
  const payloads = blocks.map((lines) => new TextEncoder().encode(lines.map(({ text }) => text).join('')))
  const flags = (atomic ? lineFlags.atomic : 0) | (skipBadLines ? lineFlags.skipBadLines : 0)
  return {
    ...{ requestId, lane: 'lines', steps, refused, message: undefined },
    text: `lines${atomic ? ' atomic' : ''}${skipBadLines ? ' skip' : ''} ${describeBlocks(blocks)}`,
    blocks: payloads.map((payload, index) => ({
      payload,
      header: ringHeader(requestId, flags | blockFlags(index, payloads.length)),
    })),
  }
}

function describeBlocks(blocks: readonly (readonly Line[])[]): string {
  return blocks.map((lines) => `[${lines.map(({ row }) => (row ? `${row.table} ${row.n}` : 'bad')).join(', ')}]`).join()
}

function blockFlags(index: number, count: number): number {
  return (index === 0 ? lineFlags.first : 0) | (index === count - 1 ? lineFlags.last : 0)
}

function ringHeader(requestId: number, flags: number): RingHeader {
  const precision = precisionCodes.n
  return { kind: ringKinds.lines, flags, precision, requestId, connectionId: 1, nowMicros: firstMicros }
}

/** Optional columns of a line. Symbols come first, fields in their order. */
function randomShape({ random }: RequestState): readonly string[] {
  return optionalColumns.filter((name) => random.chance(name.length === 1 ? 0.5 : 0.04))
}

function goodLine(state: RequestState, table: string, names: readonly string[]): Line {
  const n = state.nextRow++
  const ts = nextMicros(state)
  const values = [...names, 'n'].map((name) => ({ name, type: typeOf(name), value: randomValue(state, name, n) }))
  const tags = values.filter(({ type }) => type === 'SYMBOL').map(({ name, value }) => `,${name}=${String(value)}`)
  const fields = values
    .filter(({ type }) => type !== 'SYMBOL')
    .map(({ name, type, value }) => fieldText(name, type, value))
  const text = `${table}${tags.join('')} ${fields.join(',')} ${ts}000\n`
  return { text, row: { table, n, ts, values } }
}

function randomValue(state: RequestState, name: string, n: number): Cell {
  return name === 'n' ? n : randomCell(state, typeOf(name))
}

function fieldText(name: string, type: ColumnType, value: Cell): string {
  if (type === 'VARCHAR') return `${name}="${String(value)}"`
  if (type === 'BOOLEAN') return `${name}=${value === true ? 't' : 'f'}`
  return `${name}=${String(value)}${type === 'LONG' ? 'i' : ''}`
}

function badLine({ random }: RequestState, table: string): Line {
  const bad = ['n=bad', 'n=1i,d=nonsense', 'n=12x4i', 'd=1.5.5,n=1i', 'n']
  return { text: `${table},s=bad ${random.pick(bad)}\n`, row: undefined }
}

function stepsOfLines(
  blocks: readonly (readonly Line[])[],
  atomic: boolean,
  skipBadLines: boolean,
): { readonly steps: Step[]; readonly refused: boolean } {
  const firstBad = blocks.flat().findIndex(({ row }) => row === undefined)
  if (atomic) {
    const rows = blocks.flat().flatMap(({ row }) => row ?? [])
    return { steps: firstBad >= 0 ? [] : [{ kind: 'rows', rows }], refused: firstBad >= 0 }
  }
  let before = 0
  const steps: Step[] = []
  for (const lines of blocks) {
    const retained = firstBad < 0 || skipBadLines ? lines : lines.slice(0, Math.max(0, firstBad - before))
    const rows = retained.flatMap(({ row }) => row ?? [])
    if (rows.length > 0) steps.push({ kind: 'rows', rows })
    before += lines.length
  }
  return { steps, refused: false }
}

// ---- inserts, checkpoints
// --------------------------------------------------------------------------------------------

/** Rows for up to two tables, one transaction. */
export function insertRequest(state: RequestState, tables: readonly TableVersion[]): Request | undefined {
  const { random } = state
  if (tables.length === 0) return undefined
  const chosen = new Set([random.pick(tables), random.pick(tables)])
  const rows: RowSpec[] = []
  const inputs: RowsInput[] = []
  for (const { schema } of chosen) {
    const own = Array.from({ length: random.between(1, 6) }, () => insertedRow(state, schema))
    rows.push(...own)
    inputs.push({ tableId: schema.id, rows: own.length, columns: inputColumns(schema, own) })
  }
  const requestId = state.nextRequestId++
  return {
    ...{ requestId, lane: 'command', refused: false, blocks: [] },
    text: `insert ${rows.map(({ table, n }) => `${table} ${n}`).join(', ')}`,
    steps: [{ kind: 'rows', rows }],
    message: { kind: 'rows', requestId, tables: inputs },
  }
}

function insertedRow(state: RequestState, schema: TableSchema): RowSpec {
  const n = state.nextRow++
  const values = liveColumns(schema)
    .filter(({ id, name }) => id !== schema.timestampId && (name === 'n' || state.random.chance(0.6)))
    .map(({ name }) => ({ name, type: typeOf(name), value: randomValue(state, name, n) }))
  return { table: schema.name, n, ts: nextMicros(state), values }
}

function inputColumns(schema: TableSchema, rows: readonly RowSpec[]): RowsInput['columns'] {
  return liveColumns(schema).map(({ id, name, type }) => ({
    columnId: id,
    type,
    values: rows.map(({ ts, values }): Value => {
      if (id === schema.timestampId) return BigInt(ts)
      const value = values.find((entry) => entry.name === name)?.value ?? null
      return type.name === 'LONG' && value !== null ? BigInt(value as number) : value
    }),
  }))
}

export function checkpointRequest(state: RequestState): Request {
  const requestId = state.nextRequestId++
  const message = { kind: 'checkpoint', requestId } as const
  return { requestId, lane: 'command', text: 'checkpoint', steps: [], refused: false, blocks: [], message }
}

// ---- schema changes
// --------------------------------------------------------------------------------------------------

export function changeRequest(state: RequestState, tables: readonly TableVersion[]): Request {
  const { random } = state
  if (tables.length < 3 || random.chance(0.2)) return createRequest(state)
  const { schema } = random.pick(tables)
  const { id } = schema
  const choice = random.below(12)
  if (choice < 2) return changeOf(state, { kind: 'dropTable', tableId: id }, { kind: 'drop', id }, schema.name)
  if (choice < 4) return changeOf(state, { kind: 'truncateTable', tableId: id }, { kind: 'truncate', id }, schema.name)
  if (choice < 6 && schema.timestampId >= 0) {
    const name = random.pick([...lineTables, 'delta'])
    const change = { kind: 'renameTable', tableId: id, name } as const
    return changeOf(state, change, { kind: 'rename', id, name }, `${schema.name} to ${name}`)
  }
  return columnRequest(state, schema, random.pick(['add', 'add', 'drop', 'rename'] as const))
}

function changeOf(state: RequestState, change: SchemaChange, step: ModelChange, what: string): Request {
  const requestId = state.nextRequestId++
  return {
    ...{ requestId, lane: 'command', refused: undefined, blocks: [] },
    text: `${change.kind} ${what}`,
    steps: [{ kind: 'change', change: step }],
    message: { kind: 'change', requestId, change },
  }
}

function columnRequest(state: RequestState, schema: TableSchema, kind: 'add' | 'drop' | 'rename'): Request {
  const { random } = state
  const { id } = schema
  const name = random.pick(optionalColumns)
  const movable = liveColumns(schema).filter((column) => mayChange(schema, column))
  if (kind === 'add' || movable.length === 0) {
    const type = typeOf(name)
    const change = {
      kind: 'addColumn',
      tableId: id,
      column: { name, type: dataType(type) },
      ifNotExists: false,
    } as const
    return changeOf(state, change, { kind: 'addColumn', id, name, type }, `${schema.name} ${name}`)
  }
  const column = random.pick(movable)
  if (kind === 'drop') {
    const change = { kind: 'dropColumn', tableId: id, columnId: column.id } as const
    return changeOf(state, change, { kind: 'dropColumn', id, column: column.name }, `${schema.name} ${column.name}`)
  }
  const target = random.pick(optionalColumns.filter((other) => typeOf(other) === column.type.name))
  const change = { kind: 'renameColumn', tableId: id, columnId: column.id, name: target } as const
  const step = { kind: 'renameColumn', id, column: column.name, name: target } as const
  return changeOf(state, change, step, `${schema.name} ${column.name} to ${target}`)
}

function mayChange({ timestampId, dedupKeys }: TableSchema, { id, name }: ColumnSchema): boolean {
  return id !== timestampId && name !== 'n' && !dedupKeys.includes(id)
}

function createRequest(state: RequestState): Request {
  const { random } = state
  const name = random.pick([...lineTables, 'delta', 'plain', 'plain', 'upsert'])
  const hasTimestamp = name !== 'plain'
  const dedup = name === 'upsert' && random.chance(0.7)
  const optional = optionalColumns.filter((column) => column === 's' || random.chance(0.3))
  const columns = ['n', ...optional].map((column) => ({ name: column, type: typeOf(column), dropped: false }))
  if (hasTimestamp) columns.push({ name: 'ts', type: 'TIMESTAMP', dropped: false })
  const timestampId = hasTimestamp ? columns.length - 1 : -1
  const schema = {
    ...{ name, timestampId, bypassWal: false, ttl: null, maxUncommittedRows: 1, o3MaxLagMicros: 1, createdMicros: 0 },
    columns: columns.map(({ name: column, type }, id) => ({ id, name: column, type: dataType(type), dropped: false })),
    partitionBy: hasTimestamp ? random.pick(['DAY', 'HOUR', 'MONTH', 'YEAR'] as const) : 'NONE',
    dedupKeys: dedup ? [timestampId, columns.findIndex((column) => column.name === 's')] : [],
  } as const
  const timestamp = hasTimestamp ? 'ts' : undefined
  const table = { id: -1, name, columns, timestamp, dedup, rows: [] }
  const ifNotExists = random.chance(0.5)
  return changeOf(state, { kind: 'createTable', schema, ifNotExists }, { kind: 'create', table }, name)
}
