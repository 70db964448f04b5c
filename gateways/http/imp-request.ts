// Parses and validates the parameters of /imp. Tuning parameters of other servers are validated and have no effect.

import { type EpochUnit, epochUnit } from '../../engine/engine.js'
import { ImportError, type ImportOptions } from '../../pipeline/ingest.js'
import { parseQueryString, type QueryParameters } from './query-string.js'

export interface ImpRequest extends Omit<ImportOptions, 'engine' | 'session' | 'connectionId' | 'name' | 'blockBytes'> {
  /** Null: use the file's name. */
  readonly name: string | null
  readonly json: boolean
}

const partitionUnits = ['NONE', 'HOUR', 'DAY', 'WEEK', 'MONTH', 'YEAR']

export function wantsJson(queryString: string): boolean {
  return parseQueryString(queryString).parameters.get('fmt')?.toLowerCase() === 'json'
}

/** Throws for a response format that imports do not support. */
export function checkFormat(queryString: string): void {
  const format = parseQueryString(queryString).parameters.get('fmt') ?? ''
  if (!['', 'json', 'text'].includes(format.toLowerCase()))
    throw new ImportError(`unrecognised format, expected json or text [format=${format}]`)
}

export function parseImpRequest(queryString: string): ImpRequest {
  const { parameters } = parseQueryString(queryString)
  checkInteger(parameters, 'maxUncommittedRows', 31, 'invalid maxUncommittedRows, must be an int')
  checkInteger(parameters, 'o3MaxLag', 63, 'invalid o3MaxLag value, must be a long')
  return {
    name: parameters.get('name') ?? null,
    json: wantsJson(queryString),
    overwrite: isTrue(parameters, 'overwrite'),
    forceHeader: isTrue(parameters, 'forceHeader'),
    create: parameters.get('create')?.toLowerCase() !== 'false',
    skipExtra: isTrue(parameters, 'skipLev'),
    skipRows: parseAtomicity(parameters.get('atomicity') ?? ''),
    partitionBy: parsePartitionBy(parameters.get('partitionBy') ?? ''),
    timestamp: parameters.get('timestamp') ?? null,
    unit: parseUnit(parameters.get('unit') ?? ''),
    delimiter: parseDelimiter(parameters.get('delimiter') ?? ''),
  }
}

function isTrue(parameters: QueryParameters, name: string): boolean {
  return parameters.get(name)?.toLowerCase() === 'true'
}

function checkInteger(parameters: QueryParameters, name: string, bits: number, problem: string): void {
  const text = parameters.get(name) ?? ''
  if (text === '') return
  const value = /^-?\d{1,19}$/.test(text) ? BigInt(text) : null
  if (value === null || BigInt.asIntN(bits + 1, value) !== value) throw new ImportError(problem)
}

/** Whether to skip bad rows. Other modes that clients know are treated as `abort`, which loses nothing. */
function parseAtomicity(text: string): boolean {
  const known = ['', 'abort', 'skiprow', 'skipcol', 'relaxed', 'strict']
  if (!known.includes(text.toLowerCase()))
    throw new ImportError(`invalid atomicity, expected abort or skipRow [value=${text}]`)
  return text.toLowerCase() === 'skiprow'
}

function parsePartitionBy(text: string): string | null {
  if (text === '') return null
  const unit = text.toUpperCase()
  if (!partitionUnits.includes(unit)) throw new ImportError('invalid partitionBy')
  return unit
}

/** Unit of numbers in the timestamp column. */
function parseUnit(text: string): EpochUnit | null {
  if (text === '') return null
  const unit = epochUnit(text)
  if (unit === null) throw new ImportError(`invalid unit, expected s, ms, us or ns [value=${text}]`)
  return unit
}

/** A value of more than one character is ignored; the delimiter is then detected. */
function parseDelimiter(text: string): string | null {
  return text.length === 1 && text.charCodeAt(0) < 128 && !/["\r\n]/.test(text) ? text : null
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are not allowed in names
const invalidName = /[?,'"\\/:)(+*%~\u007f\ufeff\u0000-\u000f]|^[. ]|[. ]$|\.\./

export function checkTableName(name: string): string {
  if (name === '' || name.length > 127 || invalidName.test(name)) {
    throw new ImportError(`invalid table name [table=${name}]`)
  }
  return name
}
