// Calls that are arithmetic by another name, so that generated kernels compute them:
//
//   dateadd   with a constant unit of fixed length: a timestamp and so many ticks
//   datediff  the same: the distance in ticks, divided

import { dataType } from '../../types/column-types.js'
import type { TimestampUnit } from '../../types/timestamp-calendar.js'
import { isTimeUnit, ticksPerUnit } from '../../types/timestamp-floor.js'
import type { Expression } from '../plan/plan.js'

type Call = Extract<Expression, { kind: 'call' }>

const long = dataType('LONG')

/** undefined: there is none. */
export function equivalent(call: Call): Expression | undefined {
  const [first, second, third] = call.args
  if (call.args.length !== 3 || first === undefined || second === undefined || third === undefined) return undefined
  if (call.name === 'dateadd') return moved(call, first, second, third)
  return call.name === 'datediff' ? distance(call, first, second, third) : undefined
}

function moved(call: Call, unit: Expression, count: Expression, time: Expression): Expression | undefined {
  const ticks = fixedTicks(unit, time)
  if (ticks === undefined || time.type.name !== call.type.name) return undefined
  return { ...call, name: '+', args: [time, times(count, ticks)] }
}

function times(count: Expression, ticks: bigint): Expression {
  const { position } = count
  if (count.kind === 'constant' && typeof count.value === 'number')
    return longConstant(BigInt(count.value) * ticks, position)
  const wide: Expression = { kind: 'call', name: 'cast', args: [count], type: long, position }
  return { kind: 'call', name: '*', args: [wide, longConstant(ticks, position)], type: long, position }
}

function distance(call: Call, unit: Expression, from: Expression, to: Expression): Expression | undefined {
  const ticks = fixedTicks(unit, from)
  if (ticks === undefined || from.type.name !== to.type.name || call.type.name !== 'LONG') return undefined
  const { position } = call
  const step = (name: string, args: readonly Expression[]): Expression => ({
    kind: 'call',
    name,
    args,
    type: long,
    position,
  })
  const apart = step('abs', [step('-', [to, from])])
  return ticks === 1n ? apart : step('/', [apart, longConstant(ticks, position)])
}

/** Ticks of the timestamp's type that a constant unit has always; undefined: months, or finer than a tick. */
function fixedTicks(unit: Expression, { type }: Expression): bigint | undefined {
  if (unit.kind !== 'constant' || (type.name !== 'TIMESTAMP' && type.name !== 'TIMESTAMP_NS')) return undefined
  const letter = unit.value === 'u' ? 'U' : unit.value
  if (typeof letter !== 'string' || !isTimeUnit(letter)) return undefined
  if (letter === 'n' && type.name === 'TIMESTAMP') return undefined
  return ticksPerUnit(letter, type.name as TimestampUnit) ?? undefined
}

function longConstant(value: bigint, position: number): Expression {
  return { kind: 'constant', value, type: long, position }
}
