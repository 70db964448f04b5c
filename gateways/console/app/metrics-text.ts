// Parses the Prometheus text of /metrics for the live view, and computes from it values by label, and rates and
// quantiles between two readings.

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Reading {
  readonly atMs: number
  readonly samples: readonly Sample[]
}

const line = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)/
const label = /(\w+)="((?:[^"\\]|\\.)*)"/g

export function parseMetrics(text: string): Sample[] {
  return text.split('\n').flatMap((row) => {
    const match = row.startsWith('#') ? null : line.exec(row)
    if (match === null) return []
    const labels = Object.fromEntries(
      Array.from((match[2] ?? '').matchAll(label), ([, name, value]) => [name, value?.replace(/\\(.)/g, '$1')]),
    )
    return [{ name: match[1] ?? '', labels, value: Number(match[3]) }]
  })
}

/** The sum of a metric over its labels; 0 if there is none. */
export function total(samples: readonly Sample[], name: string, labels: Readonly<Record<string, string>> = {}): number {
  let sum = 0
  for (const sample of samples) {
    if (sample.name !== name) continue
    if (Object.entries(labels).every(([key, value]) => sample.labels[key] === value)) sum += sample.value
  }
  return sum
}

/** Values of a metric by one of its labels, in the order of the text. */
export function byLabel(samples: readonly Sample[], name: string, key: string): Map<string, number> {
  const values = new Map<string, number>()
  for (const sample of samples) {
    if (sample.name === name)
      values.set(sample.labels[key] ?? '', (values.get(sample.labels[key] ?? '') ?? 0) + sample.value)
  }
  return values
}

/** By how much a counter rises in a second. A counter that fell was reset with its server. */
export function rate(
  before: Reading | undefined,
  now: Reading,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number {
  if (before === undefined || now.atMs <= before.atMs) return 0
  const rise = total(now.samples, name, labels) - total(before.samples, name, labels)
  return Math.max(0, (rise * 1000) / (now.atMs - before.atMs))
}

/** An upper bound of a share of a histogram's values since an earlier reading; null if there were none. */
export function quantile(before: Reading | undefined, now: Reading, name: string, share: number): number | null {
  const counts = bucketsOf(now.samples, name)
  for (const [bound, count] of before === undefined ? [] : bucketsOf(before.samples, name)) {
    counts.set(bound, (counts.get(bound) ?? 0) - count)
  }
  const all = counts.get(Number.POSITIVE_INFINITY) ?? 0
  if (all <= 0) return null
  const sorted = [...counts].sort(([a], [b]) => a - b)
  return sorted.find(([, count]) => count >= all * share)?.[0] ?? null
}

function bucketsOf(samples: readonly Sample[], name: string): Map<number, number> {
  const buckets = new Map<number, number>()
  for (const { name: full, labels, value } of samples) {
    if (full !== `${name}_bucket`) continue
    const bound = labels['le'] === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels['le'])
    buckets.set(bound, (buckets.get(bound) ?? 0) + value)
  }
  return buckets
}
