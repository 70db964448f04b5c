// Parses the parameters of a table: `with maxUncommittedRows = 1000, o3MaxLag = 1s` of CREATE TABLE, and SET PARAM of
// ALTER TABLE.

import { SqlError } from '../../base/errors.js'
import type { TableSchema } from '../../storage/schema/schema.js'
import type * as ast from '../ast/ast.js'

export const defaultMaxUncommittedRows = 500_000
export const defaultO3MaxLagMicros = 600_000_000

type Options = Partial<Pick<TableSchema, 'maxUncommittedRows' | 'o3MaxLagMicros'>>

/** Options of CREATE TABLE. Errors have the position after the value. */
export function applyOptions(options: readonly ast.TableOption[]): Options {
  return Object.assign({}, ...options.map(createdWith)) as Options
}

function createdWith({ name, value, end }: ast.TableOption): Options {
  switch (name.toLowerCase()) {
    case 'maxuncommittedrows': {
      const maxUncommittedRows = wholeNumber(value)
      if (maxUncommittedRows !== null) return { maxUncommittedRows }
      throw new SqlError(` could not parse maxUncommittedRows value "${value}"`, end)
    }
    case 'o3maxlag':
      return { o3MaxLagMicros: duration(value, end) }
    default:
      throw new SqlError(` unrecognized ${name} after WITH`, end)
  }
}

/** The option of SET PARAM. */
export function optionOf({ name, value, position, end }: ast.TableOption): Options {
  switch (name.toLowerCase()) {
    case 'maxuncommittedrows': {
      const maxUncommittedRows = wholeNumber(value)
      if (maxUncommittedRows !== null) return { maxUncommittedRows }
      const digits = /^\d+(?=\.)/.exec(value)?.[0]
      if (digits !== undefined) throw new SqlError('unexpected token [.]', end - value.length + digits.length)
      throw new SqlError(`invalid value [value=${value},parameter=maxUncommittedRows]`, position)
    }
    case 'o3maxlag':
      return { o3MaxLagMicros: duration(value, position) }
    default:
      throw new SqlError(`unknown parameter '${name}'`, position)
  }
}

function wholeNumber(text: string): number | null {
  const number = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
  return number <= 2_147_483_647 ? number : null
}

const microsPerUnit: Readonly<Record<string, number>> = {
  us: 1,
  ms: 1000,
  s: 1_000_000,
  m: 60_000_000,
  h: 3_600_000_000,
  d: 86_400_000_000,
}

/**
 * Microseconds of a duration such as `1s`. Errors have the position `position` plus the length of the text, as existing
 * clients expect.
 */
function duration(text: string, position: number): number {
  if (/^\d*$/.test(text)) throw new SqlError(`expected interval qualifier in ${text}`, position + text.length)
  const [, digits = '', unit = ''] = /^(\d{1,9})([a-z]+)$/.exec(text) ?? []
  const micros = microsPerUnit[unit]
  if (micros === undefined) throw new SqlError(`invalid interval qualifier ${text}`, position + text.length)
  return Number(digits) * micros
}
