// SQL functions that extract fields of timestamps and intervals with PostgreSQL's results. The fields second,
// milliseconds and microseconds all count from the start of the minute, and the first two have a fraction: at
// 12:00:01.5, `second` is 1.5 and `milliseconds` is 1500. extract() returns DECIMAL for fields with a fraction and LONG
// for others; date_part() returns DOUBLE.

import { SqlError } from '../../base/errors.js'
import { type DataType, dataType } from '../../types/column-types.js'
import { castValue } from '../../types/convert.js'
import { formatDecimal } from '../../types/number.js'
import { floorModulo } from '../../types/timestamp-calendar.js'
import type { Value } from '../../types/value.js'
import type { BoundArgument, CallSite, ScalarFunction } from './function-types.js'
import { partNamed } from './times.js'

const minute = 60_000_000n
const timestamp = dataType('TIMESTAMP')

/** Scale of the result, and whether it counts from the start of the minute. The value is computed in microseconds. */
const exactParts: Readonly<Record<string, { readonly scale: number; readonly ofMinute: boolean }>> = {
  epoch: { scale: 6, ofMinute: false },
  second: { scale: 6, ofMinute: true },
  milliseconds: { scale: 3, ofMinute: true },
  microseconds: { scale: 0, ofMinute: true },
}

/** Whether the field is a second or smaller, or the epoch. */
export function isExactPart(part: string): boolean {
  return exactParts[partNamed(part)] !== undefined
}

/** Integer fields of an interval. It has days, but no months, which have no fixed length. */
const spanParts: Readonly<Record<string, (micros: bigint) => bigint>> = {
  day: (micros) => micros / (1440n * minute),
  hour: (micros) => (micros / (60n * minute)) % 24n,
  minute: (micros) => (micros / minute) % 60n,
  quarter: () => 1n,
  ...{ month: () => 0n, year: () => 0n, decade: () => 0n, century: () => 0n, millennium: () => 0n },
}

function named([part]: readonly BoundArgument[]): string {
  return typeof part?.constant === 'string' ? partNamed(part.constant) : ''
}

/** LONG for integer fields. */
function numberOf(args: readonly BoundArgument[]): DataType {
  const { scale = 0 } = exactParts[named(args)] ?? {}
  return scale === 0 ? dataType('LONG') : dataType('DECIMAL', 19, scale)
}

function scaled(micros: bigint, { scale, type }: { readonly scale: number; readonly type: DataType }): Value {
  return type.name === 'DOUBLE' ? Number(formatDecimal(micros, scale)) : micros
}

function ofTime([part, ts]: readonly Value[], { argTypes, type }: CallSite): Value {
  const found = exactParts[partNamed(String(part))]
  const micros = castValue(ts as bigint, argTypes[1] ?? timestamp, timestamp)
  if (found === undefined || typeof micros !== 'bigint') return null
  return scaled(found.ofMinute ? floorModulo(micros, minute) : micros, { scale: found.scale, type })
}

function ofSpan([part, span]: readonly Value[], { type }: CallSite): Value {
  const name = partNamed(String(part))
  const micros = span as bigint
  const found = exactParts[name]
  if (found !== undefined) return scaled(found.ofMinute ? micros % minute : micros, { scale: found.scale, type })
  const whole = spanParts[name]
  if (whole === undefined) throw new SqlError(`unsupported interval part: ${String(part)}`, 0)
  return scaled(whole(micros), { scale: 0, type })
}

const time = "'2024-03-31T13:45:30.123456Z'::timestamp"

export const exactTimeParts: readonly ScalarFunction[] = [
  {
    name: 'exact_part',
    takes: ['TEXT', 'TIME'],
    gives: numberOf,
    description:
      'epoch, second, milliseconds or microseconds with a fraction; implements extract() for clients of PostgreSQL.',
    example: [`exact_part('second', ${time})`, '30.123456'],
    eval: ofTime,
  },
  {
    name: 'exact_date_part',
    takes: ['TEXT', 'TIME'],
    gives: 'DOUBLE',
    description: 'The same as a DOUBLE; implements date_part() for clients of PostgreSQL.',
    example: [`exact_date_part('milliseconds', ${time})`, '30123.456'],
    eval: ofTime,
  },
  {
    name: 'span_part',
    takes: ['TEXT', 'LONG'],
    gives: numberOf,
    description: 'A field of an interval in microseconds; implements extract() for clients of PostgreSQL.',
    example: ["span_part('second', 90500000)", '30.500000'],
    eval: ofSpan,
  },
  {
    name: 'span_date_part',
    takes: ['TEXT', 'LONG'],
    gives: 'DOUBLE',
    description: 'The same as a DOUBLE.',
    example: ["span_date_part('second', 90500000)", '30.5'],
    eval: ofSpan,
  },
]
