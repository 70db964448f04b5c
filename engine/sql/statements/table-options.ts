// Parameters of a table: `with maxUncommittedRows = 1000, o3MaxLag = 1s` and SET PARAM.

import { SqlError } from '../../base/errors.js'
import type { TableSchema } from '../../storage/schema.js'
import { ticksPerUnit } from '../../types/timestamp-floor.js'
import type * as ast from '../parse/ast.js'
import { expressionText } from '../parse/text.js'

type Options = Partial<Pick<TableSchema, 'maxUncommittedRows' | 'o3MaxLagMicros'>>

export function applyOptions(options: readonly ast.TableOption[]): Options {
  return Object.assign({}, ...options.map(optionOf)) as Options
}

export function optionOf({ name, value, position }: ast.TableOption): Options {
  switch (name.toLowerCase()) {
    case 'maxuncommittedrows':
      return { maxUncommittedRows: wholeNumber(value, name, position) }
    case 'o3maxlag':
      return { o3MaxLagMicros: duration(value, name, position) }
    default:
      throw new SqlError(`unknown parameter '${name}'`, position)
  }
}

function wholeNumber(value: ast.TableOption['value'], name: string, position: number): number {
  const number = 'kind' in value && value.kind === 'integer' ? Number(value.digits) : Number.NaN
  if (!Number.isInteger(number) || number > 2_147_483_647) {
    const text = !('kind' in value) ? '' : value.kind === 'unary' ? value.operator : expressionText(value)
    throw new SqlError(`invalid value [value=${text},parameter=${name}]`, position)
  }
  return number
}

function duration(value: ast.TableOption['value'], name: string, position: number): number {
  if ('kind' in value && value.kind === 'integer') return Number(value.digits)
  const interval = 'kind' in value ? null : value
  const ticks = interval === null || interval.unit === null ? null : ticksPerUnit(interval.unit, 'TIMESTAMP')
  if (interval === null || ticks === null || interval.count.kind !== 'integer')
    throw new SqlError(`invalid value [parameter=${name}]`, position)
  return Number(ticks) * Number(interval.count.digits)
}
