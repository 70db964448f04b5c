// The definition of a dashboard, as the console stores it in the server: panels, each with a query; variables, whose
// values become literals in the queries; a time range; and the interval at which the panels are refreshed. The server
// checks a definition before it stores it, and the console before it shows it.

import { givesSecret } from './sql-text.js'

export const panelKinds = ['chart', 'rows', 'value'] as const
export const chartStyles = ['lines', 'area', 'bars', 'points', 'heat'] as const
export const panelWidths = ['third', 'half', 'full'] as const
export const panelHeights = ['low', 'medium', 'high'] as const
export const variableKinds = ['text', 'number', 'list', 'query'] as const
export const refreshIntervals = ['off', '5s', '10s', '30s', '1m', '5m', '15m', '1h'] as const

export interface Panel {
  readonly title: string
  readonly kind: (typeof panelKinds)[number]
  /** Of a chart. */
  readonly style: (typeof chartStyles)[number]
  readonly width: (typeof panelWidths)[number]
  readonly height: (typeof panelHeights)[number]
  readonly sql: string
  /** Follows a single value. */
  readonly unit: string
}

export interface Variable {
  readonly name: string
  readonly kind: (typeof variableKinds)[number]
  /** Choices of a list. */
  readonly choices: readonly string[]
  /** Its first column has the choices. */
  readonly sql: string
  /** Whether several choices may be selected; none selected means all. */
  readonly several: boolean
  readonly initial: readonly string[]
}

export interface Dashboard {
  /** `6h`: the time until now; `<from>/<to>`: a fixed range. */
  readonly range: string
  readonly refresh: (typeof refreshIntervals)[number]
  readonly variables: readonly Variable[]
  readonly panels: readonly Panel[]
}

/** What is wrong with a definition; the message is for its author. */
export class DashboardError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'DashboardError'
  }
}

const panelsMax = 50
const variablesMax = 20
const choicesMax = 1000
const titleLengthMax = 200
const sqlLengthMax = 20_000
const valueLengthMax = 1000
/** They stand for the time range. */
const reservedNames: readonly string[] = ['from', 'to', 'interval']

/** Reads a definition. Throws DashboardError. */
export function dashboardFrom(value: unknown): Dashboard {
  const given = membersOf('a dashboard', value, ['range', 'refresh', 'variables', 'panels'])
  const variables = listOf(given, 'variables', variablesMax).map((each, index) =>
    variableFrom(`variable ${index + 1}`, each),
  )
  const names = variables.map(({ name }) => name.toLowerCase())
  const twice = names.find((name, index) => names.indexOf(name) < index)
  if (twice !== undefined) throw new DashboardError(`two variables have one name [name=${twice}]`)
  const range = textOf('a dashboard', given, 'range', 100, '6h')
  if (parseRange(range) === null)
    throw new DashboardError(`'range' is a duration such as 6h, or <from>/<to> [value=${range}]`)
  return {
    range,
    refresh: oneOf('a dashboard', given, 'refresh', refreshIntervals),
    variables,
    panels: listOf(given, 'panels', panelsMax).map((each, index) => panelFrom(`panel ${index + 1}`, each)),
  }
}

function panelFrom(what: string, value: unknown): Panel {
  const given = membersOf(what, value, ['title', 'kind', 'style', 'width', 'height', 'sql', 'unit'])
  return {
    title: textOf(what, given, 'title', titleLengthMax),
    kind: oneOf(what, given, 'kind', panelKinds),
    style: oneOf(what, given, 'style', chartStyles),
    width: oneOf(what, given, 'width', panelWidths),
    height: oneOf(what, given, 'height', panelHeights),
    sql: statementOf(what, given),
    unit: textOf(what, given, 'unit', 20),
  }
}

function variableFrom(what: string, value: unknown): Variable {
  const given = membersOf(what, value, ['name', 'kind', 'choices', 'sql', 'several', 'initial'])
  const name = textOf(what, given, 'name', 50)
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
    throw new DashboardError(`the name of a variable consists of letters, digits and _ [name=${name}]`)
  if (reservedNames.includes(name.toLowerCase()))
    throw new DashboardError(`the name stands for the time range [name=${name}]`)
  const several = given.get('several') ?? false
  if (typeof several !== 'boolean') throw new DashboardError(`${what}: 'several' is true or false`)
  const kind = oneOf(what, given, 'kind', variableKinds)
  const initial = textsOf(what, given, 'initial')
  if (kind === 'number' && !initial.every((text) => isNumber(text)))
    throw new DashboardError(`${what}: '${initial.join()}' is no number`)
  return { name, kind, choices: textsOf(what, given, 'choices'), sql: statementOf(what, given), several, initial }
}

export function isNumber(text: string): boolean {
  return /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text)
}

interface RelativeRange {
  readonly kind: 'relative'
  readonly ms: number
}

interface FixedRange {
  readonly kind: 'fixed'
  readonly fromMs: number
  readonly toMs: number
}

const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** Null: the text is no range. */
export function parseRange(text: string): RelativeRange | FixedRange | null {
  const [, count = '', unit = ''] = /^(\d{1,6})([smhdw])$/.exec(text) ?? []
  const ms = Number(count) * (unitMs[unit] ?? Number.NaN)
  if (ms > 0) return { kind: 'relative', ms }
  const [from = '', to = '', ...rest] = text.split('/')
  const [fromMs, toMs] = [timeOf(from), timeOf(to)]
  return rest.length === 0 && fromMs < toMs ? { kind: 'fixed', fromMs, toMs } : null
}

/** A time without a zone is UTC. NaN: it is none. */
function timeOf(text: string): number {
  if (!/^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z?)?$/.test(text)) return Number.NaN
  return Date.parse(text.includes('T') && !text.endsWith('Z') ? `${text}Z` : text)
}

function membersOf(what: string, value: unknown, names: readonly string[]): ReadonlyMap<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new DashboardError(`${what} is a JSON object`)
  const given = new Map<string, unknown>(Object.entries(value))
  for (const key of given.keys())
    if (!names.includes(key)) throw new DashboardError(`unknown member of ${what} [name=${key}]`)
  return given
}

function listOf(given: ReadonlyMap<string, unknown>, member: string, max: number): readonly unknown[] {
  const list = given.get(member) ?? []
  if (!Array.isArray(list)) throw new DashboardError(`'${member}' is a list`)
  if (list.length > max) throw new DashboardError(`there are too many ${member} [max=${max}]`)
  return list
}

function textsOf(what: string, given: ReadonlyMap<string, unknown>, member: string): string[] {
  return listOf(given, member, choicesMax).map((text) => {
    if (typeof text !== 'string' || text.length > valueLengthMax)
      throw new DashboardError(`${what}: '${member}' has texts of up to ${valueLengthMax} characters`)
    return text
  })
}

function textOf(
  what: string,
  given: ReadonlyMap<string, unknown>,
  member: string,
  lengthMax: number,
  otherwise = '',
): string {
  const text = given.get(member) ?? otherwise
  if (typeof text !== 'string') throw new DashboardError(`${what}: '${member}' is a text`)
  if (text.length > lengthMax) throw new DashboardError(`${what}: '${member}' is too long [max=${lengthMax}]`)
  return text.trim()
}

function statementOf(what: string, given: ReadonlyMap<string, unknown>): string {
  const sql = textOf(what, given, 'sql', sqlLengthMax)
  if (givesSecret(sql)) throw new DashboardError(`${what}: the query may contain a secret, which others would see`)
  return sql
}

/** The first choice is what is meant without the member. */
function oneOf<Choice extends string>(
  what: string,
  given: ReadonlyMap<string, unknown>,
  member: string,
  choices: readonly [Choice, ...Choice[]],
): Choice {
  const value = given.get(member) ?? choices[0]
  const found = choices.find((choice) => choice === value)
  if (found === undefined) throw new DashboardError(`${what}: '${member}' is one of ${choices.join(', ')}`)
  return found
}
