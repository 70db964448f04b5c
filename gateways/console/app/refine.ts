// Rewrites a query for a zoomed chart: restricts it to the visible time range. If it has SAMPLE BY, also chooses a
// shorter interval, if one gives no more points than fit into the chart.

import { literal, quoted, type Token, tokensOf } from '../../common/sql-text.js'

/** Milliseconds of the intervals that a zoom may choose. */
const steps: readonly (readonly [interval: string, ms: number])[] = [
  ...([1, 2, 5, 10, 20, 50, 100, 200, 500].map((n) => [`${n}T`, n]) satisfies [string, number][]),
  ...([1, 2, 5, 10, 15, 30].map((n) => [`${n}s`, n * 1000]) satisfies [string, number][]),
  ...([1, 2, 5, 10, 15, 30].map((n) => [`${n}m`, n * 60_000]) satisfies [string, number][]),
  ...([1, 2, 3, 6, 12].map((n) => [`${n}h`, n * 3_600_000]) satisfies [string, number][]),
  ...([1, 7].map((n) => [`${n}d`, n * 86_400_000]) satisfies [string, number][]),
  ['1M', 30 * 86_400_000],
  ['1y', 365 * 86_400_000],
]

const unitMs: Readonly<Record<string, number>> = {
  ...{ n: 1e-6, U: 1e-3, T: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 },
  ...{ M: 30 * 86_400_000, y: 365 * 86_400_000 },
}

export interface TimeRange {
  readonly fromMs: number
  readonly toMs: number
}

/** The interval for a range: the finest one that gives at most `points` points. */
export function intervalFor({ fromMs, toMs }: TimeRange, points: number): string {
  const wanted = (toMs - fromMs) / points
  return (steps.find(([, ms]) => ms >= wanted) ?? steps.at(-1) ?? ['1y'])[0]
}

/** Milliseconds of an interval such as `15m`; null if it is none. */
export function intervalMs(interval: string): number | null {
  const match = /^(\d*)([nUTsmhdwMy])$/.exec(interval)
  if (match === null) return null
  const [, count = '', unit = ''] = match
  const ms = unitMs[unit]
  return ms === undefined ? null : (count === '' ? 1 : Number(count)) * ms
}

/** The interval of the first SAMPLE BY of a query; null if it has none. */
export function sampleInterval(sql: string): string | null {
  const place = findSample(significant(sql))
  return place === null ? null : place.interval.text
}

/**
 * The query for a time range. `time`: the name of the time column in the result. Null if the query has no SAMPLE BY
 * whose timestamp can be found.
 */
export function refine(sql: string, time: string, range: TimeRange, points: number): string | null {
  const tokens = significant(sql)
  const place = findSample(tokens)
  if (place === null) return null
  const { sample, interval, after } = place
  const begin = selectOf(tokens, sample)
  const source = begin === null ? null : sourceOf(sql, tokens, begin, sample, time)
  if (begin === null || source === null) return null
  const current = intervalMs(interval.text)
  const chosen = intervalFor(range, points)
  const finer = current !== null && (intervalMs(chosen) ?? current) < current ? chosen : interval.text
  const condition = `${source} >= ${timeLiteral(range.fromMs)} AND ${source} < ${timeLiteral(range.toMs)}`
  const where = clauseBetween(tokens, begin, sample, 'where')
  const sampleStart = tokens[sample]?.start ?? 0
  const whereEnd = where === null ? 0 : (tokens[where]?.start ?? 0) + 'where'.length
  const head =
    where === null
      ? `${sql.slice(0, sampleStart)}WHERE ${condition} `
      : `${sql.slice(0, whereEnd)} (${sql.slice(whereEnd, sampleStart).trim()}) AND ${condition} `
  return `${head}SAMPLE BY ${finer}${sql.slice(after)}`
}

/** A query without SAMPLE BY, over a time range. */
export function narrowed(sql: string, time: string, { fromMs, toMs }: TimeRange): string {
  const name = quoted(time)
  return `SELECT * FROM (${sql}\n) WHERE ${name} >= ${timeLiteral(fromMs)} AND ${name} < ${timeLiteral(toMs)}`
}

function timeLiteral(ms: number): string {
  const whole = Math.floor(ms)
  const micros = Math.floor((ms - whole) * 1000)
  return literal(new Date(whole).toISOString().replace('Z', `${String(micros).padStart(3, '0')}Z`))
}

function significant(sql: string): Token[] {
  return tokensOf(sql).filter(({ kind }) => kind !== 'space' && kind !== 'comment')
}

interface SamplePlace {
  /** Index of the token SAMPLE. */
  readonly sample: number
  readonly interval: { readonly text: string }
  /** Offset behind the interval, and behind FROM .. TO if that follows. */
  readonly after: number
}

function findSample(tokens: readonly Token[]): SamplePlace | null {
  for (let index = 0; index + 2 < tokens.length; index++) {
    if (!isWord(tokens[index], 'sample') || !isWord(tokens[index + 1], 'by')) continue
    const interval = tokens[index + 2]
    if (interval === undefined) continue
    return { sample: index, interval, after: endOfRange(tokens, index + 3, interval.start + interval.text.length) }
  }
  return null
}

/** The range replaces FROM .. TO of SAMPLE BY, which would add rows outside of it. */
function endOfRange(tokens: readonly Token[], start: number, end: number): number {
  let index = start
  let behind = end
  while (isWord(tokens[index], 'from') || isWord(tokens[index], 'to')) {
    const value = tokens[index + 1]
    if (value?.kind !== 'string') break
    behind = value.start + value.text.length
    index += 2
  }
  return behind
}

function isWord(token: Token | undefined, word: string): boolean {
  return token?.kind === 'word' && token.text.toLowerCase() === word
}

/** The SELECT to which a SAMPLE BY belongs: the last one before it at the same depth of brackets. */
function selectOf(tokens: readonly Token[], sample: number): number | null {
  return lastAtDepth(tokens, 0, sample, (token) => isWord(token, 'select'))
}

function clauseBetween(tokens: readonly Token[], begin: number, end: number, word: string): number | null {
  return lastAtDepth(tokens, begin, end, (token) => isWord(token, word))
}

function lastAtDepth(
  tokens: readonly Token[],
  begin: number,
  end: number,
  matches: (token: Token | undefined) => boolean,
): number | null {
  let depth = 0
  for (let index = end - 1; index >= begin; index--) {
    const token = tokens[index]
    if (token?.text === ')') depth++
    else if (token?.text === '(') depth--
    if (depth < 0) return null
    if (depth === 0 && matches(token)) return index
  }
  return null
}

/** The expression behind a column of the result: itself, or what it is an alias of. */
function sourceOf(sql: string, tokens: readonly Token[], begin: number, sample: number, time: string): string | null {
  const from = clauseBetween(tokens, begin, sample, 'from')
  if (from === null) return null
  for (const item of itemsOf(tokens.slice(begin + 1, from))) {
    const last = item.at(-1)
    const first = item[0]
    if (last === undefined || first === undefined || nameOf(last) !== time.toLowerCase()) continue
    const before = item.at(-2)
    if (before === undefined || before.text === '.') return sql.slice(first.start, last.start + last.text.length)
    const end = isWord(before, 'as') ? before.start : last.start
    const expression = sql.slice(first.start, end).trim()
    // Only a column: an expression such as a function of the timestamp would not prune partitions.
    return /^[\w."]+$/.test(expression) ? expression : null
  }
  return quoted(time)
}

function itemsOf(tokens: readonly Token[]): Token[][] {
  const items: Token[][] = [[]]
  let depth = 0
  for (const token of tokens) {
    if (token.text === '(') depth++
    else if (token.text === ')') depth--
    if (depth === 0 && token.text === ',') items.push([])
    else items.at(-1)?.push(token)
  }
  return items
}

function nameOf({ kind, text }: Token): string {
  return (kind === 'name' ? text.slice(1, -1).replaceAll('""', '"') : text).toLowerCase()
}
