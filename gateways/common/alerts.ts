// The interface between the HTTP gateway and the part of the server that stores and evaluates alerts, and the check of
// an alert's definition as clients send it. An alert is a query that the server runs repeatedly; it fires while the
// query returns rows.
//
//   { "name": "silent", "query": "select ..", "every": "1m", "for": "5m" }

import { givesSecret } from './sql-text.js'

export interface AlertDefinition {
  readonly name: string
  readonly query: string
  readonly everyMs: number
  /** How long the query must return rows before the alert fires. */
  readonly forMs: number
  /** Who defined it. */
  readonly user: string
}

export interface Alerts {
  /** Adds an alert, or replaces the one of that name. Rejects if its query fails. */
  define(definition: AlertDefinition): Promise<void>
  /** Whether there was one. */
  remove(name: string): Promise<boolean>
}

/** What is wrong with a definition; the message is for its author. */
export class AlertError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'AlertError'
  }
}

const nameLengthMax = 100
const queryLengthMax = 100_000
const everyMsMin = 1000
const everyMsMax = 24 * 3_600_000
const forMsMax = 7 * 24 * 3_600_000
const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }
const members: ReadonlySet<string> = new Set(['name', 'query', 'every', 'for', 'user'])

/** Reads a definition as clients send it and the file contains it. Throws AlertError. */
export function alertFrom(value: unknown, user: string): AlertDefinition {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new AlertError('an alert is a JSON object with name, query, every and for')
  const given = new Map<string, unknown>(Object.entries(value))
  for (const key of given.keys())
    if (!members.has(key)) throw new AlertError(`unknown member of an alert [name=${key}]`)
  const name = textOf(given, 'name', nameLengthMax)
  const query = textOf(given, 'query', queryLengthMax)
  if (givesSecret(query)) throw new AlertError('the query may contain a secret, which everybody would see')
  const everyMs = durationOf('every', given.get('every') ?? '1m', everyMsMin, everyMsMax)
  const forMs = durationOf('for', given.get('for') ?? '0s', 0, forMsMax)
  return { name, query, everyMs, forMs, user }
}

/** As it is written into the file, and read from there by `alertFrom`. */
export function alertJson({ name, query, everyMs, forMs, user }: AlertDefinition): Readonly<Record<string, string>> {
  return { name, query, every: durationText(everyMs), for: durationText(forMs), user }
}

export function durationText(ms: number): string {
  const unit = ['d', 'h', 'm', 's'].find((each) => ms > 0 && ms % (unitMs[each] ?? 1) === 0) ?? 's'
  return `${ms / (unitMs[unit] ?? 1)}${unit}`
}

function textOf(given: ReadonlyMap<string, unknown>, member: string, lengthMax: number): string {
  const text = given.get(member)
  if (typeof text !== 'string' || text.trim() === '') throw new AlertError(`an alert needs a ${member}`)
  if (text.length > lengthMax) throw new AlertError(`the ${member} of an alert is too long [max=${lengthMax}]`)
  return text.trim()
}

function durationOf(member: string, value: unknown, min: number, max: number): number {
  const [, count = '', unit = ''] = /^(\d{1,9})([smhd])$/.exec(String(value)) ?? []
  const ms = Number(count) * (unitMs[unit] ?? Number.NaN)
  if (!(ms >= min && ms <= max))
    throw new AlertError(
      `'${member}' is a duration from ${durationText(min)} to ${durationText(max)}, such as 5m [value=${String(value)}]`,
    )
  return ms
}
