// Parses and validates the options of COPY; unknown options and options that do not apply are errors.

import { SqlError } from '../engine/base/errors.js'
import {
  type CopyRequest,
  type Encoding,
  falsePositiveRateDefault,
  type ParquetEncoding,
  parquetCodec,
  parquetDefaults,
  parquetLevel,
} from '../engine/engine.js'

export interface CopyImport {
  readonly parquet: boolean
  readonly delimiter: string | null
  readonly forceHeader: boolean
  readonly noHeader: boolean
  readonly timestamp: string | null
  readonly pattern: string | null
  readonly partitionBy: string | null
  readonly skipRows: boolean
}

export interface CopyExport {
  readonly encoding: Encoding
  readonly extension: 'csv' | 'parquet'
}

const partitionUnits: ReadonlySet<string> = new Set(['NONE', 'HOUR', 'DAY', 'WEEK', 'MONTH', 'YEAR'])

/** Options are taken one by one; those left at the end are unknown. */
class Options {
  readonly #options: Map<string, string>
  readonly #position: number

  constructor({ options, position }: CopyRequest) {
    this.#options = new Map(options)
    this.#position = position
  }

  has(name: string): boolean {
    return this.#options.has(name)
  }

  take(name: string): string | null {
    const value = this.#options.get(name) ?? null
    this.#options.delete(name)
    return value
  }

  truth(name: string, initial: boolean): boolean {
    const value = this.take(name)?.toLowerCase()
    if (value === undefined) return initial
    if (['true', 'on', '1'].includes(value)) return true
    return ['false', 'off', '0'].includes(value) ? false : this.refuse(`${name} expects true or false`)
  }

  whole(name: string, initial: number): number {
    const value = this.take(name)
    if (value === null) return initial
    return /^[1-9]\d{0,9}$/.test(value) ? Number(value) : this.refuse(`${name} expects a positive number`)
  }

  delimiter(): string | null {
    const value = this.take('delimiter')
    if (value === null) return null
    const character = value === '\\t' ? '\t' : value
    return character.length === 1 && !/["\r\n0-9A-Za-z]/.test(character)
      ? character
      : this.refuse('delimiter expects one punctuation character, a space or a tab')
  }

  end(): void {
    for (const name of this.#options.keys()) this.refuse(`unknown option of COPY [option=${name}]`)
  }

  refuse(message: string): never {
    throw new SqlError(message, this.#position)
  }
}

export function importOptions(request: CopyRequest): CopyImport {
  const options = new Options(request)
  const format = options.take('format')
  const parquet = format === null ? /\.parquet$/i.test(request.file) : format.toLowerCase() === 'parquet'
  if (parquet && (options.has('header') || options.has('delimiter')))
    options.refuse('HEADER and DELIMITER are for CSV files')
  const onError = (options.take('on error') ?? 'abort').toLowerCase()
  if (!['abort', 'skip_row'].includes(onError)) options.refuse('ON ERROR expects ABORT or SKIP_ROW')
  const partitionBy = options.take('partition by')?.toUpperCase() ?? null
  if (partitionBy !== null && !partitionUnits.has(partitionBy))
    options.refuse(`invalid partitionBy [value=${partitionBy}, known=${[...partitionUnits].join()}]`)
  const header = options.has('header') ? options.truth('header', true) : null
  const found: CopyImport = {
    parquet,
    delimiter: parquet ? ',' : options.delimiter(),
    forceHeader: parquet || header === true,
    noHeader: header === false,
    timestamp: options.take('timestamp'),
    pattern: format === null || /^(csv|text|parquet)$/i.test(format) ? null : format,
    partitionBy,
    skipRows: onError === 'skip_row',
  }
  if (found.pattern !== null && found.timestamp === null) options.refuse('FORMAT of a timestamp needs TIMESTAMP')
  options.end()
  return found
}

export function exportOptions(request: CopyRequest): CopyExport {
  const options = new Options(request)
  const written = options.take('format')?.toLowerCase() ?? (/\.csv$/i.test(request.file) ? 'csv' : 'parquet')
  const found = written === 'csv' ? csvOptions(options) : written === 'parquet' ? parquetOptions(options) : null
  if (found === null) return options.refuse('COPY TO writes the formats CSV and PARQUET')
  options.end()
  return found
}

function csvOptions(options: Options): CopyExport {
  const delimiter = (options.delimiter() ?? ',').charCodeAt(0)
  return { encoding: { kind: 'csv', delimiter, header: options.truth('header', true) }, extension: 'csv' }
}

function bloomOptions(options: Options): ParquetEncoding['bloom'] {
  const falseShare = Number(options.take('bloom_filter_fpp') ?? falsePositiveRateDefault)
  if (!(falseShare > 0 && falseShare < 1)) return options.refuse('bloom_filter_fpp expects a number between 0 and 1')
  const columns = options.take('bloom_filter_columns')
  return columns === null ? null : { columns: columns.split(',').map((name) => name.trim()), falseShare }
}

function parquetOptions(options: Options): CopyExport {
  const fail = (message: string): never => options.refuse(message)
  const named = (options.take('compression_codec') ?? parquetDefaults.codec)
    .toUpperCase()
    .replace(/^UNCOMPRESSED$/, 'NONE')
    .replace('LZ4_RAW', 'LZ4')
  const codec = parquetCodec(named, fail)
  const level = options.has('compression_level') ? options.whole('compression_level', 0) : null
  const version = options.whole('parquet_version', 1)
  if (version !== 1 && version !== 2) return options.refuse('parquet_version expects 1 or 2')
  return {
    encoding: {
      kind: 'parquet',
      codec,
      level: parquetLevel(codec, level, fail),
      rowGroupRows: options.whole('row_group_size', parquetDefaults.rowGroupRows),
      pageBytes: options.whole('data_page_size', parquetDefaults.pageBytes),
      statistics: options.truth('statistics_enabled', true),
      version,
      rawArrays: options.truth('raw_array_encoding', false),
      bloom: bloomOptions(options),
    },
    extension: 'parquet',
  }
}
