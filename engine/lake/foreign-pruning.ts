// File pruning for Iceberg tables that other programs wrote: selects the manifests and data files whose bounds and
// partition values may have rows for a query's conditions.

import { type Bound, boundsTest, type ColumnCondition, isTextCondition, textTest } from '../types/bounds.js'
import { bucketOf } from './bucket-transform.js'
import type { ForeignDataFile, ForeignManifest } from './foreign-manifests.js'
import type { ForeignMetadata, PartitionSource, TableField } from './foreign-metadata.js'
import { boundOf, type ForeignType, type RawValue, rawBound } from './foreign-types.js'

export type Range = readonly [min: Bound | Uint8Array, max: Bound | Uint8Array]

/** What a condition says of a field. */
interface FieldTest {
  readonly field: TableField
  passes(range: Range): boolean
  /** Whether a value that satisfies the condition may be in one of the buckets between two. */
  mayBeInBuckets(buckets: number, low: number, high: number): boolean
}

export function fieldTests(fields: readonly TableField[], conditions: readonly ColumnCondition[]): FieldTest[] {
  return conditions.flatMap((condition): FieldTest[] => {
    const field = fields[condition.column]
    const passes = rangeTest(condition)
    if (field === undefined || passes === null) return []
    return [{ field, passes, mayBeInBuckets: bucketTest(field.foreign, condition) }]
  })
}

function rangeTest(condition: ColumnCondition): FieldTest['passes'] | null {
  if (isTextCondition(condition)) {
    const test = textTest(condition.name, condition.values)
    if (test === null) return null
    return ([min, max]) => !(min instanceof Uint8Array && max instanceof Uint8Array) || test(min, max)
  }
  const values = condition.values.flatMap((value) => (value instanceof Uint8Array ? [] : [value]))
  const test = boundsTest(condition.name, values)
  if (test === null) return null
  return ([min, max]) => min instanceof Uint8Array || max instanceof Uint8Array || test(min, max)
}

/** The values are hashed once for each number of buckets, not for each file. */
function bucketTest(type: ForeignType, { name, values }: ColumnCondition): FieldTest['mayBeInBuckets'] {
  if (name !== '=' && name !== 'in') return () => true
  const known = new Map<number, ReturnType<typeof boundsTest>>()
  return (buckets, low, high) => {
    let test = known.get(buckets)
    if (test === undefined) {
      const found = new Set(values.map((value) => bucketOf(type, value, buckets)))
      // The bucket of a value is unknown: it may be any.
      test = found.has(null)
        ? null
        : boundsTest(
            'in',
            [...found].filter((bucket) => bucket !== null),
          )
      known.set(buckets, test)
    }
    return test === null || test(low, high)
  }
}

/** Whether a manifest may list files with rows for all conditions. */
export function mayListRows(
  metadata: ForeignMetadata,
  tests: readonly FieldTest[],
  manifest: ForeignManifest,
): boolean {
  const spec = metadata.specs.get(manifest.specId) ?? []
  return spec.every((source, index) => {
    const bounds = manifest.partitions[index]
    if (bounds === undefined) return true
    const { field, type } = partitionType(metadata, source)
    // Rows whose value is NULL satisfy no condition, so partitions of NULLs alone have none.
    const own = field === undefined ? [] : tests.filter((test) => test.field.id === field.id)
    if (own.length === 0 || field === undefined) return true
    if (bounds.lowest === null || bounds.highest === null) return source.transform === 'void' || !bounds.hasNull
    const [low, high] = [rawBound(type, bounds.lowest), rawBound(type, bounds.highest)]
    if (!own.every((test) => mayBeInBuckets(source, test, low, high))) return false
    const range = low === undefined || high === undefined ? null : sourceRange(source, field.foreign, low, high)
    return range === null || own.every(({ passes }) => passes(range))
  })
}

/** Whether a data file may have rows for all conditions. */
export function mayHaveRows(metadata: ForeignMetadata, tests: readonly FieldTest[], file: ForeignDataFile): boolean {
  const ranges = partitionRanges(metadata, file)
  return (
    tests.every(({ field, passes }) => {
      const range = boundsOf(field, file)
      if (range !== null && !passes(range)) return false
      return ranges.every(([id, partition]) => id !== field.id || (partition !== null && passes(partition)))
    }) && mayBeInPartition(metadata, tests, file)
  )
}

function mayBeInPartition(metadata: ForeignMetadata, tests: readonly FieldTest[], file: ForeignDataFile): boolean {
  const spec = metadata.specs.get(file.specId) ?? []
  return spec.every((source, index) => {
    const bucket = file.partition[index] ?? undefined
    const own = tests.filter(({ field }) => field.id === source.sourceId)
    return own.every((test) => mayBeInBuckets(source, test, bucket, bucket))
  })
}

/** Whether one of the values of the condition may be in the buckets between two, or the field is not in buckets. */
function mayBeInBuckets(
  { transform }: PartitionSource,
  test: FieldTest,
  low: RawValue | undefined,
  high: RawValue | undefined,
): boolean {
  const [, buckets] = /^bucket\[(\d+)\]$/.exec(transform) ?? []
  if (buckets === undefined || typeof low !== 'number' || typeof high !== 'number') return true
  return test.mayBeInBuckets(Number(buckets), low, high)
}

export function boundsOf({ id, foreign }: TableField, { lowerBounds, upperBounds }: ForeignDataFile): Range | null {
  const [lower, upper] = [lowerBounds.get(id), upperBounds.get(id)]
  if (lower === undefined || upper === undefined) return null
  const min = boundOf(foreign, rawBound(foreign, lower) ?? null)
  const max = boundOf(foreign, rawBound(foreign, upper) ?? null)
  return min === undefined || max === undefined ? null : [min, max]
}

/** Ranges of columns that follow from the partition of a file, by field id; null: the column is NULL in all rows. */
function partitionRanges(metadata: ForeignMetadata, file: ForeignDataFile): [number, Range | null][] {
  const spec = metadata.specs.get(file.specId) ?? []
  return spec.flatMap((source, index): [number, Range | null][] => {
    const { field } = partitionType(metadata, source)
    const value = file.partition[index]
    if (field === undefined || value === undefined || source.transform === 'void') return []
    if (value === null) return [[field.id, null]]
    const range = sourceRange(source, field.foreign, value, value)
    return range === null ? [] : [[field.id, range]]
  })
}

function partitionType(
  { fields }: ForeignMetadata,
  { sourceId, transform }: PartitionSource,
): { readonly field: TableField | undefined; readonly type: ForeignType } {
  const field = fields.find(({ id }) => id === sourceId)
  const isTime = /^(year|month|day|hour|bucket)/.test(transform)
  return { field, type: isTime ? 'int' : (field?.foreign ?? 'int') }
}

/** The values of a column that a transform takes to a value between two; null: unknown. */
function sourceRange({ transform }: PartitionSource, type: ForeignType, low: RawValue, high: RawValue): Range | null {
  const [min, max] = [boundOf(type, low), boundOf(type, high)]
  if (transform === 'identity') return min === undefined || max === undefined ? null : [min, max]
  const [, width] = /^truncate\[(\d+)\]$/.exec(transform) ?? []
  if (width !== undefined) return truncatedRange(min, max, width)
  const unit = units[transform]
  const scale = scales[typeof type === 'string' ? type : '']
  if (unit === undefined || scale === undefined || !isNumber(low) || !isNumber(high)) return null
  const [begin, end] = [unit(Number(low)), unit(Number(high) + 1)]
  if (!Number.isSafeInteger(begin) || !Number.isSafeInteger(end)) return null
  return [BigInt(begin) * scale, BigInt(end) * scale - 1n]
}

function isNumber(value: RawValue): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint'
}

function truncatedRange(min: Range[0] | undefined, max: Range[0] | undefined, width: string): Range | null {
  if (min === undefined || max === undefined) return null
  if (min instanceof Uint8Array && max instanceof Uint8Array) return [min, Buffer.concat([max, Buffer.alloc(8, 0xff)])]
  if (typeof max === 'bigint') return [min, max + BigInt(width) - 1n]
  return typeof max === 'number' ? [min, max + Number(width) - 1] : null
}

/** Milliseconds at the begin of a partition. */
const units: Readonly<Record<string, (value: number) => number>> = {
  year: (value) => Date.UTC(1970 + value, 0),
  month: (value) => Date.UTC(1970, value),
  day: (value) => value * 86_400_000,
  hour: (value) => value * 3_600_000,
}

/** Units of a column's values in a millisecond. */
const scales: Readonly<Record<string, bigint>> = {
  date: 1n,
  timestamp: 1000n,
  timestamptz: 1000n,
  timestamp_ns: 1_000_000n,
  timestamptz_ns: 1_000_000n,
}

export function isBelow(value: Range[0], other: Range[0]): boolean {
  if (value instanceof Uint8Array || other instanceof Uint8Array)
    return value instanceof Uint8Array && other instanceof Uint8Array && Buffer.compare(value, other) < 0
  return value < other
}
