// Progress display of long commands: one line on standard error that is rewritten, with amount, rate and remaining
// time. It is shown only if standard error is a terminal.

export interface Progress {
  /** Adds to the amount that is done. */
  add(amount: number): void
  /** Sets the amount that is done; `total` where it became known. */
  set(done: number, total?: number | null): void
  /** Removes the line. */
  end(): void
}

type Unit = 'bytes' | 'rows'

interface Stream {
  readonly isTTY?: boolean
  readonly columns?: number
  write(text: string): unknown
}

const intervalMs = 250
/** A command that is over sooner shows nothing. */
const quietMs = 500
const silent: Progress = { add: () => {}, set: () => {}, end: () => {} }

export function openProgress(
  label: string,
  { total = null, unit = 'bytes' }: { readonly total?: number | null; readonly unit?: Unit } = {},
  stream: Stream = process.stderr,
  now: () => number = () => performance.now(),
): Progress {
  if (stream.isTTY !== true) return silent
  const begin = now()
  let [done, all, shownMs] = [0, total, begin + quietMs - intervalMs]
  let isShown = false
  const show = (): void => {
    const ms = now()
    if (ms - shownMs < intervalMs) return
    shownMs = ms
    isShown = true
    const text = `${label}: ${progressText({ done, total: all, unit, seconds: (ms - begin) / 1000 })}`
    stream.write(`\r${text.slice(0, (stream.columns ?? 80) - 1)}\x1b[K`)
  }
  return {
    add: (amount) => {
      done += amount
      show()
    },
    set: (amount, known) => {
      done = amount
      if (known !== undefined) all = known
      show()
    },
    end: () => {
      if (isShown) stream.write('\r\x1b[K')
      isShown = false
    },
  }
}

export function progressText({
  done,
  total,
  unit,
  seconds,
}: {
  readonly done: number
  readonly total: number | null
  readonly unit: Unit
  readonly seconds: number
}): string {
  const amount = unit === 'bytes' ? sizeText : countText
  const rate = done / Math.max(seconds, 0.001)
  const speed = `${amount(rate)}/s`
  if (total === null || total <= 0) return `${amount(done)}, ${speed}`
  const share = Math.min(1, done / total)
  const left = rate > 0 ? `, ${timeText(Math.max(0, total - done) / rate)} left` : ''
  return `${Math.floor(share * 100)} %, ${amount(done)} of ${amount(total)}, ${speed}${left}`
}

export function sizeText(bytes: number): string {
  const units = ['bytes', 'KB', 'MB', 'GB', 'TB']
  let [value, index] = [bytes, 0]
  for (; value >= 1000 && index < units.length - 1; index++) value /= 1000
  return `${index === 0 ? Math.round(value) : value.toFixed(value < 10 ? 1 : 0)} ${units[index]}`
}

function countText(count: number): string {
  return `${Math.round(count).toLocaleString('en')} rows`
}

function timeText(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
}
