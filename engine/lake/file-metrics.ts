// Column statistics of an Iceberg data file, as Iceberg's manifests contain them: counts of values and NULLs, lower and
// upper bounds. They are read from the file's Parquet footer. Only integers, floating-point numbers and timestamps have
// bounds, and lists do not even have counts.

import { type ObjectBody, StoreError } from '../object-store/object-store.js'
import { emptyStructure, type ParquetTypes, parquetThrift } from '../storage/part/parquet-thrift.js'
import type { LakeColumn } from './lake-columns.js'
import type { ColumnMetrics } from './manifest-files.js'

/** Length of the footer, and the magic number. */
const parquetTailBytes = 8
const parquetFooterBytesMax = 32 * 1024 * 1024

/** The footer of a file. Throws StoreError if it is too long to be decoded. */
export function parquetFooter({ bytes, read }: ObjectBody): Uint8Array {
  const tail = read(bytes - parquetTailBytes, parquetTailBytes)
  const footerBytes = Buffer.from(tail).readUInt32LE(0)
  if (footerBytes > Math.min(bytes - parquetTailBytes, parquetFooterBytesMax))
    throw new StoreError('rejected', `a data file has too long a footer [bytes=${footerBytes}]`)
  return read(bytes - parquetTailBytes - footerBytes, footerBytes).slice()
}

/** Of a file of these columns with this footer. */
export function metricsOf(
  columns: readonly LakeColumn[],
  encoded: Uint8Array,
): ColumnMetrics & { readonly rows: number } {
  const { types, decode } = parquetThrift()
  const footer = emptyStructure<ParquetTypes.FileMetaData>(types.FileMetaData)
  decode(footer, Buffer.from(encoded.buffer, encoded.byteOffset, encoded.length))
  const metrics = {
    valueCounts: new Map<number, number>(),
    nullCounts: new Map<number, number>(),
    lowerBounds: new Map<number, Buffer>(),
    upperBounds: new Map<number, Buffer>(),
  }
  const rows = Number(footer.num_rows)
  for (const [index, { field, isWidened = false }] of columns.entries()) {
    if (typeof field.type !== 'string') continue
    const chunks = footer.row_groups.map(({ columns: all }) => all[index]?.meta_data?.statistics)
    const nulls = chunks.reduce((sum, statistics) => sum + Number(statistics?.null_count ?? 0), 0)
    metrics.valueCounts.set(field.id, rows)
    metrics.nullCounts.set(field.id, nulls)
    const compare = comparisons[field.type]
    if (compare === undefined || isWidened) continue
    const ranges = chunks.flatMap((statistics) => {
      const { min_value: min, max_value: max } = statistics ?? {}
      return min == null || max == null ? [] : [{ min: Buffer.from(min), max: Buffer.from(max) }]
    })
    if (ranges.length === 0) continue
    metrics.lowerBounds.set(
      field.id,
      ranges.map(({ min }) => min).reduce((x, y) => (compare(x, y) <= 0 ? x : y)),
    )
    metrics.upperBounds.set(
      field.id,
      ranges.map(({ max }) => max).reduce((x, y) => (compare(x, y) >= 0 ? x : y)),
    )
  }
  return { ...metrics, rows }
}

type Comparison = (x: Buffer, y: Buffer) => number

const longs: Comparison = (x, y) => Number(x.readBigInt64LE() - y.readBigInt64LE())

/** Of bounds, whose bytes are the same in Parquet and Iceberg. Other types have none. */
const comparisons: Readonly<Record<string, Comparison>> = {
  int: (x, y) => x.readInt32LE() - y.readInt32LE(),
  long: longs,
  timestamptz: longs,
  timestamptz_ns: longs,
  float: (x, y) => x.readFloatLE() - y.readFloatLE(),
  double: (x, y) => x.readDoubleLE() - y.readDoubleLE(),
}
