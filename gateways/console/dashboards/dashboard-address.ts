// The address of a dashboard: name, owner, time range, refresh interval and values of variables are in the URL behind
// `#dashboards?`, so a link shows what its author saw, and the browser's buttons go back and forth.

import { type Dashboard, parseRange, refreshIntervals } from '../../common/dashboards.js'

export interface Address {
  readonly name: string
  readonly user: string
  /** What the dashboard says itself if null. */
  readonly range: string | null
  readonly refresh: Dashboard['refresh'] | null
  /** By name in lower case. */
  readonly values: ReadonlyMap<string, readonly string[]>
}

const prefix = 'var.'

/** Null: the list of dashboards. */
export function addressFrom(hash: string): Address | null {
  const query = /^#dashboards\?(.*)$/s.exec(hash)?.[1]
  if (query === undefined) return null
  const given = new URLSearchParams(query)
  const values = new Map<string, string[]>()
  for (const [key, value] of given) {
    if (!key.startsWith(prefix)) continue
    const name = key.slice(prefix.length).toLowerCase()
    values.set(name, [...(values.get(name) ?? []), value])
  }
  const range = given.get('range')
  return {
    name: given.get('name') ?? '',
    user: given.get('user') ?? '',
    range: range === null || parseRange(range) === null ? null : range,
    refresh: refreshIntervals.find((interval) => interval === given.get('refresh')) ?? null,
    values,
  }
}

export function hashOf({ name, user, range, refresh, values }: Address): string {
  const query = new URLSearchParams({ name, user })
  if (range !== null) query.set('range', range)
  if (refresh !== null) query.set('refresh', refresh)
  for (const [variable, chosen] of values) for (const value of chosen) query.append(prefix + variable, value)
  return `#dashboards?${query}`
}

/** Milliseconds of a refresh interval; null: off. */
export function refreshMs(interval: Dashboard['refresh']): number | null {
  const range = parseRange(interval)
  return range?.kind === 'relative' ? range.ms : null
}

/** The time range now. */
export function rangeNow(range: string, nowMs: number): { readonly fromMs: number; readonly toMs: number } {
  const parsed = parseRange(range) ?? { kind: 'relative', ms: 6 * 3_600_000 }
  return parsed.kind === 'fixed' ? parsed : { fromMs: nowMs - parsed.ms, toMs: nowMs }
}

export function fixedRange(fromMs: number, toMs: number): string {
  const [from, to] = [Math.floor(fromMs), Math.max(Math.floor(fromMs) + 1, Math.ceil(toMs))]
  return `${new Date(from).toISOString()}/${new Date(to).toISOString()}`
}
