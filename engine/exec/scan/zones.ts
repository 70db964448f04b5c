// Decides which pages and parts (Parquet files) a scan can skip. It skips
//
// - pages whose minimum and maximum (zone map) show that no row satisfies the filter
// - pages whose index of keys (storage/part/page-keys.ts) has none of the keys that the filter looks for
// - parts that do not contain the symbols (dictionary-encoded strings) that the filter requires
// - parts whose Bloom filter of a column has none of the values that the filter requires
//
// The filter is still applied to the rows of all other pages.

import { xxh64 } from '../../kernels/xxh64.js'
import { dictionaryCount } from '../../memory/column-layout.js'
import { type ConstantComparison, constantComparison, orderedBounds } from '../../sql/plan/column-conditions.js'
import { type Expression, rowIdColumn } from '../../sql/plan/plan.js'
import { conjuncts } from '../../sql/typing/walk-expression.js'
import { boundsTest } from '../../types/bounds.js'
import type { DataType } from '../../types/column-types.js'
import type { Value } from '../../types/value.js'
import type { ExecContext } from '../batch/context.js'
import type { WantedSymbols } from '../batch/query-state.js'
import { wantedSymbols } from '../batch/symbol-matches.js'
import { type Run, runOf, runsOf, type ScanMorsel } from './morsels.js'
import { withRowIds } from './row-ids.js'
import type { ScanShape } from './scan-shape.js'
import { type SearchedKeys, wantedKeys, wantedValues } from './wanted-keys.js'

/** Whether a row of the morsel may pass. NULL passes none of the supported comparisons. */
type ZoneTest = (morsel: ScanMorsel) => boolean

const never: ZoneTest = () => false

/** Symbols are not resolved in larger dictionaries. */
const dictionaryEntriesMax = 65_536

/**
 * The runs of a scan that may have rows in its time ranges and for its filter. `keys`: those that the filter looks for,
 * if the caller has found them.
 */
export function scanRuns(
  context: ExecContext,
  shape: ScanShape,
  keys: SearchedKeys | null = wantedKeys(context, shape),
): Run[] {
  const { memory, partAccess, arena } = context
  const tests: ZoneTest[] = []
  if (shape.filter !== null) for (const part of conjuncts(shape.filter)) tests.push(...testOf(context, part, shape))
  if (tests.includes(never)) return []
  if (keys !== null) tests.push(keys.mayHave)
  const { version } = shape.snapshot
  const stored = runsOf(memory, partAccess, shape.snapshot, shape.ranges, arena)
  const runs = shape.columnIds.includes(rowIdColumn)
    ? withRowIds(context, version, version.schema.timestampId >= 0, stored)
    : stored
  if (tests.length === 0) return runs
  // Applied last, because rows of a skipped page may replace rows of other pages.
  const retained: Run[] = []
  for (const run of runs) retained.push(...withoutMorsels(run, (morsel) => !tests.every((test) => test(morsel))))
  return retained
}

/** The run without some of its morsels; an empty list when none is left. */
function withoutMorsels(run: Run, dropped: (morsel: ScanMorsel) => boolean): Run[] {
  const morsels = run.morsels.filter((morsel) => !dropped(morsel))
  if (morsels.length === run.morsels.length) return [run]
  return morsels.length === 0 ? [] : [runOf(morsels, run.sorted, run.memtable)]
}

function testOf(context: ExecContext, condition: Expression, shape: ScanShape): ZoneTest[] {
  if (condition.kind !== 'call') return []
  const wanted = wantedSymbols(condition, context)
  if (wanted !== undefined) return symbolTest(context, wanted, shape)
  const comparison = constantComparison(condition)
  return [...(comparison === null ? [] : columnTest(comparison, shape)), ...bloomTest(condition, shape)]
}

/** With more values, most parts have one of them. */
const bloomValuesMax = 256

/** For conditions that only certain values of a column satisfy: a part with a Bloom filter may have none of them. */
function bloomTest(condition: Expression, { columnIds, snapshot, types }: ScanShape): ZoneTest[] {
  const { columns } = snapshot.version.schema
  if (!columns.some(({ parquet }) => parquet?.bloomFilter === true)) return []
  const wanted = wantedValues(condition)
  if (wanted === null || wanted.values.length > bloomValuesMax) return []
  const [type, columnId] = [types[wanted.column], columnIds[wanted.column]]
  if (type === undefined || columnId === undefined || columns[columnId]?.parquet?.bloomFilter !== true) return []
  const hashes = wanted.values.flatMap((value) => plainBytes(type, value) ?? []).map(xxh64)
  if (hashes.length < wanted.values.length) return []
  const known = new Map<number, boolean>()
  return [
    (morsel) => {
      const answer = known.get(morsel.source) ?? morsel.keys()?.mayContain(columnId, hashes) ?? true
      known.set(morsel.source, answer)
      return answer
    },
  ]
}

const longs: ReadonlySet<string> = new Set(['LONG', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS'])

/** The value in Parquet's PLAIN encoding without a length; undefined for NULL and types that are not looked up. */
function plainBytes({ name }: DataType, value: Value): Uint8Array | undefined {
  if (typeof value === 'string') return name === 'STRING' || name === 'VARCHAR' ? Buffer.from(value) : undefined
  if (typeof value !== 'number' && typeof value !== 'bigint') return undefined
  const bytes = Buffer.alloc(16)
  bytes.writeBigInt64LE(BigInt.asIntN(64, BigInt(value)))
  if (name === 'BYTE' || name === 'SHORT' || name === 'INT') return bytes.subarray(0, 4)
  if (longs.has(name)) return bytes.subarray(0, 8)
  if (name !== 'UUID') return undefined
  bytes.writeBigUInt64BE(BigInt(value) >> 64n)
  bytes.writeBigUInt64BE(BigInt.asUintN(64, BigInt(value)), 8)
  return bytes
}

/** A part lists its symbols by id of the table's dictionary, so all pages of a part have the same answer. */
function symbolTest({ memory }: ExecContext, wanted: WantedSymbols, { columnIds, snapshot }: ScanShape): ZoneTest[] {
  const columnId = columnIds[wanted.column]
  const [, dictionary] = snapshot.version.dictionaries.find(([id]) => id === columnId) ?? []
  if (columnId === undefined || dictionary === undefined) return []
  const count = dictionaryCount(memory, dictionary)
  if (count > dictionaryEntriesMax) return []
  const ids = wanted.idsIn(dictionary, count)
  if (ids.length === 0) return [never]
  const known = new Map<number, boolean>()
  return [
    (morsel) => {
      const zoneAnswer = known.get(morsel.source) ?? morsel.mayHold(columnId, ids)
      known.set(morsel.source, zoneAnswer)
      return zoneAnswer
    },
  ]
}

function columnTest(comparison: ConstantComparison, shape: ScanShape): ZoneTest[] {
  const values = orderedBounds(comparison)
  const test = values === null ? null : boundsTest(comparison.name, values)
  if (test === null) return []
  const columnId = shape.columnIds[comparison.column.index]
  if (columnId === undefined) return []
  return [
    (morsel) => {
      const bounds = morsel.bounds(columnId)
      return bounds === undefined || test(bounds.min, bounds.max)
    },
  ]
}
