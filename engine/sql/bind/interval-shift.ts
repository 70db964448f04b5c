// `ts + interval '1 day'` as tools of the PostgreSQL world write it: a chain of dateadd() over the units of the text.
//
//   interval   [sign]number unit, any number of them; [sign]hh:mm[:ss[.fraction]]; `ago` behind all turns the signs

import type * as ast from '../parse/ast.js'

/** A number of the units of dateadd(). */
interface Shift {
  readonly unit: string
  readonly count: number
}

const units: readonly (readonly [name: RegExp, unit: string, times: number])[] = [
  [/^(y|yr|yrs|years?)$/, 'y', 1],
  [/^(mon|mons|months?)$/, 'M', 1],
  [/^(w|weeks?)$/, 'd', 7],
  [/^(d|days?)$/, 'd', 1],
  [/^(h|hr|hrs|hours?)$/, 's', 3600],
  [/^(m|mins?|minutes?)$/, 's', 60],
  [/^(s|secs?|seconds?)$/, 's', 1],
  [/^(ms|msecs?|milliseconds?)$/, 'u', 1000],
  [/^(us|usecs?|microseconds?)$/, 'u', 1],
  [/^(decades?)$/, 'y', 10],
  [/^(centur(y|ies))$/, 'y', 100],
]

/** Null: the text is no interval of PostgreSQL. */
export function shiftsOf(text: string): readonly Shift[] | null {
  const words = text.trim().toLowerCase()
  const ago = /\sago$/.test(words)
  let rest = ago ? words.slice(0, -3).trim() : words
  const shifts: Shift[] = []
  while (rest !== '') {
    const clock = /^([+-]?)(\d+):(\d\d?)(?::(\d\d?(?:\.\d+)?))?(?=\s|$)/.exec(rest)
    const amount = clock === null ? /^([+-]?\d+(?:\.\d+)?)\s*([a-z]+)(?=[\s\d+-]|$)/.exec(rest) : null
    if (clock !== null) {
      const seconds = Number(clock[2]) * 3600 + Number(clock[3]) * 60 + Number(clock[4] ?? 0)
      shifts.push(...secondsShift(clock[1] === '-' ? -seconds : seconds))
    } else {
      const [, unit = '', times = 0] = units.find(([name]) => name.test(amount?.[2] ?? '')) ?? []
      if (unit === '') return null
      const count = Number(amount?.[1]) * times
      if (unit === 's') shifts.push(...secondsShift(count))
      else if (Number.isInteger(count)) shifts.push({ unit, count })
      else return null
    }
    rest = rest.slice((clock ?? amount)?.[0].length).trim()
  }
  if (shifts.length === 0 || shifts.some(({ count }) => Math.abs(count) >= 2 ** 31)) return null
  return ago ? shifts.map(({ unit, count }) => ({ unit, count: -count })) : shifts
}

function secondsShift(seconds: number): Shift[] {
  const whole = Math.trunc(seconds)
  const micros = Math.round((seconds - whole) * 1e6)
  return [
    ...(whole === 0 && micros !== 0 ? [] : [{ unit: 's', count: whole }]),
    ...(micros === 0 ? [] : [{ unit: 'u', count: micros }]),
  ]
}

/** The sum or difference without the interval; null for any other. */
export function shiftedTime({ operator, left, right }: ast.BinaryExpression): ast.Expression | null {
  if (operator !== '+' && operator !== '-') return null
  const behind = intervalText(right)
  const before = operator === '+' && behind === null ? intervalText(left) : null
  const shifts = shiftsOf(behind ?? before ?? '')
  if (shifts === null) return null
  const sign = operator === '-' ? -1 : 1
  return shifts.reduce<ast.Expression>(
    (time, { unit, count }) => dateadd(unit, sign * count, time),
    behind === null ? right : left,
  )
}

function intervalText(expression: ast.Expression): string | null {
  if (expression.kind !== 'cast' || expression.type.name !== 'interval') return null
  return expression.operand.kind === 'string' ? expression.operand.value : null
}

function dateadd(unit: string, count: number, time: ast.Expression): ast.Expression {
  const { position } = time
  const digits = String(Math.abs(count))
  const number: ast.Expression = { kind: 'integer', position, text: digits, digits, long: false }
  const amount: ast.Expression = count < 0 ? { kind: 'unary', position, operator: '-', operand: number } : number
  return { ...call('dateadd', position), args: [{ kind: 'string', position, value: unit }, amount, time] }
}

/** Midnight: DATE of the standard. */
export function currentDate(position: number): ast.Expression {
  return { ...call('date_trunc', position), args: [{ kind: 'string', position, value: 'day' }, call('now', position)] }
}

function call(name: string, position: number): ast.Call {
  const plain = { distinct: false, orderBy: [], filter: null, ignoreNulls: false, over: null } as const
  return { kind: 'call', position, schema: null, name, args: [], ...plain }
}
