// Parses and validates the parameters and headers of /exp.

import {
  falsePositiveRateDefault,
  type ParquetCodec,
  type ParquetEncoding,
  parquetCodec,
  parquetDefaults,
  parquetLevel,
} from '../../engine/engine.js'
import { type CommonRequest, ExecRequestError, flag, parseColumns, parseCommon } from './exec-request.js'
import type { QueryParameters } from './query-string.js'

export const exportFormats = {
  csv: { extension: 'csv', contentType: 'text/csv; charset=utf-8' },
  parquet: { extension: 'parquet', contentType: 'application/vnd.apache.parquet' },
  arrow: { extension: 'arrows', contentType: 'application/vnd.apache.arrow.stream' },
  ndjson: { extension: 'ndjson', contentType: 'application/x-ndjson; charset=utf-8' },
} as const

type ExportFormat = keyof typeof exportFormats

export interface ExpRequest extends CommonRequest {
  readonly format: ExportFormat
  /** Code of one ASCII character. */
  readonly delimiter: number
  /** Whether the first line holds the column names. */
  readonly header: boolean
  readonly countOnly: boolean
  /** Includes the extension. */
  readonly filename: string
  /** Stream at once instead of completing the file first. */
  readonly nodelay: boolean
  readonly parquet: ParquetEncoding
}

export interface ExpDefaults {
  readonly timeoutMs: number
  readonly parquetTimeoutMs: number
  readonly nowMs: number
}

export const onlySelect = '/exp endpoint only accepts SELECT'

export function parseExpRequest(
  queryString: string,
  timeoutHeader: string | undefined,
  defaults: ExpDefaults,
): ExpRequest {
  const common = parseCommon(queryString, timeoutHeader, 0)
  const { parameters, sql } = common
  if (sql === '') throw new ExecRequestError('No query text', sql)
  const text = withoutComments(sql)
  if (text === '' || otherStatement.test(text)) throw new ExecRequestError(onlySelect, sql)
  const format = parseFormat(parameters.get('fmt') ?? '', sql)
  const ownTimeout = parameters.get('timeout') ?? ''
  const timeoutMs = ownTimeout === '' ? common.timeoutMs : wholeNumber(ownTimeout, 'invalid timeout:', sql, 0)
  const defaultMs = format === 'parquet' ? defaults.parquetTimeoutMs : defaults.timeoutMs
  return {
    ...common,
    format,
    timeoutMs: timeoutMs > 0 ? timeoutMs : defaultMs,
    delimiter: parseDelimiter(parameters.get('delimiter') ?? '', sql),
    header: !flag(parameters, 'nm'),
    countOnly: flag(parameters, 'count'),
    filename: filenameOf(parameters.get('filename') ?? '', format, defaults.nowMs),
    nodelay: parameters.get('rmode') === 'nodelay',
    parquet: parseParquet(parameters, sql),
  }
}

/** Statements that /exp rejects before any table is looked up. */
const otherStatement =
  /^(alter|backup|begin|cancel|checkpoint|commit|copy|create|delete|drop|insert|reindex|rename|rollback|set|truncate|update|vacuum)\s/i

function withoutComments(sql: string): string {
  return sql.replace(/--[^\n]*|\/\*[\s\S]*?\*\//g, '').trim()
}

function parseFormat(text: string, sql: string): ExportFormat {
  const name = text === '' ? 'csv' : text.toLowerCase()
  if (Object.hasOwn(exportFormats, name)) return name as ExportFormat
  throw new ExecRequestError(`unrecognised format [format=${text}]`, sql)
}

/** Characters that can occur in numbers or quoted text and so cannot separate fields. */
const impossibleDelimiter = /[0-9A-Za-z."+\-\r\n]/

function parseDelimiter(text: string, sql: string): number {
  if (text === '') return 0x2c
  const code = text.charCodeAt(0)
  if (text.length !== 1 || code > 126 || code === 0 || impossibleDelimiter.test(text)) {
    throw new ExecRequestError('invalid delimiter, expected one character of punctuation, space or tab', sql)
  }
  return code
}

/** Replaces characters that would end a quoted header value or name another folder. */
function filenameOf(text: string, format: ExportFormat, nowMs: number): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters must not reach a header
  const clean = text.replace(/[\u0000-\u001f\u007f"\\/]/g, '_').slice(0, 200)
  return `${clean === '' ? `svc-query-${nowMs}` : clean}.${exportFormats[format].extension}`
}

function parseParquet(parameters: QueryParameters, sql: string): ParquetEncoding {
  const codec = parseCodec(parameters.get('compression_codec') ?? '')
  return {
    kind: 'parquet',
    codec,
    level: parseLevel(codec, parameters.get('compression_level') ?? '', sql),
    rowGroupRows: size(parameters.get('row_group_size'), 'invalid row group size:', parquetDefaults.rowGroupRows, sql),
    pageBytes: size(parameters.get('data_page_size'), 'invalid data page size:', parquetDefaults.pageBytes, sql),
    statistics: parameters.get('statistics_enabled')?.toLowerCase() !== 'false',
    version: parseVersion(parameters.get('parquet_version') ?? '', sql),
    rawArrays: flag(parameters, 'raw_array_encoding'),
    bloom: parseBloom(parameters, sql),
  }
}

function parseBloom(parameters: QueryParameters, sql: string): ParquetEncoding['bloom'] {
  const text = parameters.get('bloom_filter_fpp') ?? ''
  const falseShare = text === '' ? falsePositiveRateDefault : Number(text)
  if (!(falseShare > 0 && falseShare < 1)) {
    throw new ExecRequestError(`invalid bloom_filter_fpp, expected a number between 0 and 1 [value=${text}]`, sql)
  }
  const columns = parseColumns(parameters.get('bloom_filter_columns') ?? '', sql)
  return columns === null ? null : { columns, falseShare }
}

function parseCodec(text: string): ParquetCodec {
  if (text === '') return parquetDefaults.codec
  return parquetCodec(text, (message) => {
    throw new ExecRequestError(message, null)
  })
}

function parseLevel(codec: ParquetCodec, text: string, sql: string): number {
  if (text !== '' && !/^-?\d{1,9}$/.test(text)) throw new ExecRequestError(`invalid compression level:${text}`, sql)
  return parquetLevel(codec, text === '' ? null : Number(text), (message) => {
    throw new ExecRequestError(message, sql)
  })
}

/** An empty value and 0 select the default. */
function size(text: string | undefined, complaint: string, initial: number, sql: string): number {
  if (text === undefined || text === '') return initial
  return wholeNumber(text, complaint, sql, initial) || initial
}

function wholeNumber(text: string, complaint: string, sql: string, forZero: number): number {
  if (!/^\d{1,10}$/.test(text) || Number(text) > 2 ** 31 - 1) throw new ExecRequestError(`${complaint}${text}`, sql)
  return Number(text) || forZero
}

function parseVersion(text: string, sql: string): 1 | 2 {
  if (text === '' || text === '1') return 1
  if (text === '2') return 2
  if (!/^\d{1,9}$/.test(text)) throw new ExecRequestError(`invalid parquet version:${text}`, sql)
  throw new ExecRequestError(`invalid parquet version: ${text}, supported versions: 1, 2`, sql)
}
