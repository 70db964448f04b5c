// Spilling of window functions that return the value of a row at a computed place of a partition that outgrows the
// memory: lag() and lead() by a number that is not constant, and nth_value() with such a number, or to the end of the
// partition. The place is computed from counts, which other window functions return over sorted rows (window-sorted.ts):
// the number of the row in its partition, and the numbers of rows of the frame and of the partition. The value comes by
// a join of the rows with themselves, by partition and place. With IGNORE NULLS only rows with a value are numbered.

import type { Expression, Plan, PlanColumn, WindowCall, WindowFrame } from '../../sql/plan/plan.js'
import { isStable } from '../../sql/plan/volatile.js'
import { dataType } from '../../types/column-types.js'
import type { ExecContext } from '../batch/context.js'
import type { Steps } from '../join/join-build.js'
import { hasFrame } from '../window/window-calls.js'
import type { Build } from './spilled-steps.js'
import { overStored } from './stored-rows.js'
import { sortedKey } from './window-sorted.js'

type WindowPlan = Extract<Plan, { kind: 'window' }>

const longType = dataType('LONG')
const booleanType = dataType('BOOLEAN')

/** Whether one of the calls is computed this way. */
export function picksRows({ calls }: WindowPlan): boolean {
  return calls.some(isPicked)
}

function isPicked(call: WindowCall): boolean {
  const { name, args, frame, partitionBy, orderBy, type } = call
  const [value, , fallback] = args
  if (sortedKey(call) !== undefined || value?.type.name !== type.name) return false
  // The counts and the join evaluate the expressions independently of each other.
  if (![...args, ...partitionBy, ...orderBy.map(({ expression }) => expression)].every(isStable)) return false
  // A CASE of symbols is a string.
  if (name === 'lag' || name === 'lead') return fallback === undefined || type.name !== 'SYMBOL'
  return name === 'nth_value' && frame.exclude === 'none' && (frame.lo === null || frame.hi === null)
}

/** `skip`: rows of the result that were already returned. */
export function pickSteps(context: ExecContext, plan: WindowPlan, build: Build, skip: number): Steps {
  context.profile?.note('rows joined with those that window functions return')
  return overStored(context, plan.input, build, (source) => joined({ ...plan, input: source }), skip)
}

/** The rows with all results: those of picked calls by joins. */
function joined(plan: WindowPlan): Plan {
  const { input, calls } = plan
  const picked = calls.flatMap((call) => (isPicked(call) ? [picksOf(call)] : []))
  const others = calls.filter((call) => !isPicked(call))
  let rows = counted(input, [...others, ...picked.flatMap(({ counts }) => counts)])
  const results = new Map<WindowCall, Expression>()
  let first = input.columns.length + others.length
  for (const { call, counts, target } of picked) {
    const places = counts.map((_, index) => column(first + index, longType))
    first += counts.length
    const width = rows.columns.length
    const keys = [...call.partitionBy, target(places)]
    const left = extended(rows, keys)
    const right = numbered(input, call)
    rows = {
      kind: 'join',
      join: 'left',
      left,
      right,
      columns: [...left.columns, ...right.columns],
      leftKeys: keys.map((_, index) => width + index),
      rightKeys: keys.map((_, index) => index),
      residual: null,
      leftTimestamp: -1,
      rightTimestamp: -1,
      tolerance: null,
    }
    results.set(call, resultOf(call, column(left.columns.length + keys.length - 1, longType)))
  }
  const expressions = plan.columns.map(({ type }, index) => {
    const call = calls[index - input.columns.length]
    const other = call === undefined ? -1 : others.indexOf(call)
    return (call && results.get(call)) ?? column(other < 0 ? index : input.columns.length + other, type)
  })
  return { kind: 'project', columns: plan.columns, input: rows, expressions }
}

interface Picks {
  readonly call: WindowCall
  readonly counts: readonly WindowCall[]
  /** The number of the wanted row in its partition, from 1 on, by the results of the counts; NULL for none. */
  readonly target: (counts: readonly Expression[]) => Expression
}

const soFar: WindowFrame = { unit: 'rows', lo: null, hi: 0n, exclude: 'none' }
const thisRow: WindowFrame = { unit: 'rows', lo: 0n, hi: 0n, exclude: 'none' }
const allRows: WindowFrame = { unit: 'rows', lo: null, hi: null, exclude: 'none' }

function picksOf(call: WindowCall): Picks {
  const { name, args, frame } = call
  const distance = args[1] ?? long(1)
  if (!hasFrame(call)) {
    const steps = name === 'lag' ? distance : plus('-', long(0), distance)
    return {
      call,
      counts: [countOver(call, soFar), countOver(call, thisRow)],
      target: ([place = long(0), present = long(1)]) => neighbour(place, present, steps),
    }
  }
  return {
    call,
    counts: [countOver(call, frame), countOver(call, allRows)],
    target: ([inFrame = long(0), all = long(0)]) => {
      const before = frame.lo === null ? long(0) : plus('-', all, inFrame)
      const isThere = test('and', test('<', long(0), distance), test('<=', distance, inFrame))
      return { ...test('case', isThere, plus('+', before, distance)), type: longType }
    },
  }
}

/** The place so many rows back; a distance of 0 or NULL is the current row, even if its value is NULL. */
function neighbour(place: Expression, present: Expression, steps: Expression): Expression {
  const back = plus('-', plus('+', place, plus('-', long(1), present)), steps)
  const forward = plus('-', place, steps)
  const own = { ...test('case', test('=', present, long(1)), place), type: longType }
  return {
    ...test('case', test('<', long(0), steps), back, test('<', steps, long(0)), forward, own),
    type: longType,
  }
}

/** `found`: the place of the row that was found, or NULL. */
function resultOf({ args, type, name }: WindowCall, found: Expression & { readonly kind: 'column' }): Expression {
  const value = column(found.index + 1, type)
  const [, distance, fallback] = args
  if (name === 'nth_value' || fallback === undefined || distance === undefined) return value
  const [isBefore, isAfter] = [test('<', distance, long(0)), test('<', long(0), distance)]
  return { ...test('case', test('<', long(0), found), value, isBefore, fallback, isAfter, fallback, value), type }
}

/** The number of rows of a frame, with IGNORE NULLS of those with a value. */
function countOver({ args, partitionBy, orderBy, ignoreNulls, position }: WindowCall, frame: WindowFrame): WindowCall {
  const own = { name: 'count', args: ignoreNulls ? args.slice(0, 1) : [], type: longType }
  return { ...own, partitionBy, orderBy, frame, ignoreNulls: false, position }
}

/** The rows that the call can return: the columns of PARTITION BY, the place, and the value. */
function numbered(input: Plan, call: WindowCall): Plan {
  const width = input.columns.length
  const rows = counted(input, [countOver(call, soFar), countOver(call, thisRow)])
  const predicate = test('=', column(width + 1, longType), long(1))
  const present: Plan = { kind: 'filter', input: rows, columns: rows.columns, predicate }
  const expressions = [...call.partitionBy, column(width, longType), ...call.args.slice(0, 1)]
  return { kind: 'project', input: present, columns: columnsFor(expressions), expressions }
}

function counted(input: Plan, calls: readonly WindowCall[]): Plan {
  return calls.length === 0
    ? input
    : { kind: 'window', input, calls, columns: [...input.columns, ...columnsFor(calls)] }
}

function extended(input: Plan, added: readonly Expression[]): Plan {
  const own = input.columns.map(({ type }, index) => column(index, type))
  return {
    ...{ kind: 'project', input, expressions: [...own, ...added] },
    columns: [...input.columns, ...columnsFor(added)],
  }
}

function columnsFor(values: readonly Pick<Expression, 'type'>[]): PlanColumn[] {
  return values.map(({ type }, index) => ({ name: `c${index}`, type }))
}

function column(index: number, type: Expression['type']): Expression & { readonly kind: 'column' } {
  return { kind: 'column', index, type, position: 0 }
}

function long(value: number): Expression {
  return { kind: 'constant', value: BigInt(value), type: longType, position: 0 }
}

function plus(name: '+' | '-', a: Expression, b: Expression): Expression {
  return { kind: 'call', name, args: [a, b], type: longType, position: 0 }
}

function test(name: string, ...args: readonly Expression[]): Expression {
  return { kind: 'call', name, args, type: booleanType, position: 0 }
}
