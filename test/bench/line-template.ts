// Generates line-protocol load at minimal cost for the sender (about 10 ns a row), so that a benchmark measures the
// server. A block of lines is built once and sent repeatedly. Before each repetition, new timestamps are written over
// the old digits. If a block spans a whole number of seconds, only the digits of the seconds change.
//
// Shapes of rows:
//   cpu     20 columns besides the timestamp: 10 tags and 10 numbers (5 integers, 5 doubles) of 4,000 hosts, one row a
//           host every 10 s (after the public description of the benchmark TSBS cpu-only)
//   tsbs    like cpu, but all 10 numbers are integers, as in TSBS itself
//   trades  2 symbols and 2 doubles, one row a millisecond
//   market  3 symbols (100, 2 and 12 values), 2 doubles, 3 integers (1 million users), a boolean and a string, one
//           row in 43 ms
//   orders  3 symbols (1,000, 2 and 12 values), 3 doubles, 3 integers and a text of 35 bytes that never comes again,
//           one row a millisecond
//   quotes  1 symbol (the first one of market, 100 values) and 2 doubles, one row in 10 ms

export type Shape = 'cpu' | 'tsbs' | 'trades' | 'market' | 'orders' | 'quotes'
export type RowOrder = 'sorted' | 'late' | 'shuffled'

export interface LineTemplate {
  readonly bytes: Buffer
  /** Offset of each row's first timestamp digit; 19 digits and a newline follow. */
  readonly stamps: Uint32Array
  /** When each row of the first pass happened, in nanoseconds from the start. */
  readonly nanos: Float64Array
  /** The same in whole seconds, downwards. The digits behind them are in the lines already. */
  readonly seconds: Int32Array
  readonly rows: number
  /** Nanoseconds between rows. */
  readonly stepNanos: number
}

/** A small, fast, seeded generator of numbers in [0, 1) (xorshift32). */
export function randomNumbers(seed: number): () => number {
  let state = seed | 0 || 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 4294967296
  }
}

const regions = ['us-east-1', 'us-west-1', 'us-west-2', 'eu-west-1', 'eu-central-1', 'ap-southeast-1', 'ap-southeast-2']
const symbols = [
  'BTC-USD',
  'ETH-USD',
  'SOL-USD',
  'ADA-USD',
  'DOGE-USD',
  'XRP-USD',
  'LTC-USD',
  'AVAX-USD',
  'LINK-USD',
  'DOT-USD',
]
const usages = ['user', 'system', 'idle', 'nice', 'iowait', 'irq', 'softirq', 'steal', 'guest', 'guest_nice']
const hostCount = 4000
const lateShare = 0.1
const nanosPerSecond = 1e9

function pick<T>(values: readonly T[], random: () => number): T {
  return values[Math.floor(random() * values.length)] as T
}

function cpuTags(host: number, random: () => number): string {
  const region = pick(regions, random)
  const fields = [
    `hostname=host_${host}`,
    `region=${region}`,
    `datacenter=${region}${'abc'[host % 3]}`,
    `rack=${Math.floor(random() * 100)}`,
    `os=${pick(['Ubuntu16.10', 'Ubuntu16.04LTS', 'Ubuntu15.10'], random)}`,
    `arch=${pick(['x64', 'x86'], random)}`,
    `team=${pick(['SF', 'NYC', 'LON', 'CHI'], random)}`,
    `service=${Math.floor(random() * 20)}`,
    `service_version=${host % 2}`,
    `service_environment=${pick(['production', 'staging', 'test'], random)}`,
  ]
  return fields.join(',')
}

function tsbsLines(table: string, seed: number): (row: number) => string {
  return cpuLines(table, seed, true)
}

function cpuLines(table: string, seed: number, integers = false): (row: number) => string {
  const random = randomNumbers(seed)
  const tags = Array.from({ length: hostCount }, (_, host) => cpuTags(host, random))
  const state = tags.map(() => usages.map(() => random() * 100))
  return (row) => {
    const values = state[row % hostCount] as number[]
    const fields = usages.map((name, index) => {
      values[index] = Math.min(100, Math.max(0, (values[index] as number) + random() * 2 - 1))
      const value = values[index] as number
      return `usage_${name}=${index % 2 === 1 && !integers ? value.toFixed(4) : `${Math.round(value)}i`}`
    })
    return `${table},${tags[row % hostCount]} ${fields.join(',')} `
  }
}

function tradeLines(table: string, seed: number): (row: number) => string {
  const random = randomNumbers(seed)
  return () => {
    const price = (random() * 60_000).toFixed(2)
    return `${table},symbol=${pick(symbols, random)},side=${pick(['buy', 'sell'], random)} price=${price},amount=${random()} `
  }
}

const words = ['fill', 'limit', 'market', 'iceberg', 'stop', 'auction', 'cross', 'hidden', 'retail', 'block']

function marketLines(table: string, seed: number): (row: number) => string {
  const random = randomNumbers(seed)
  return (row) => {
    const tags = `symbol=S${Math.floor(random() * 100)},side=${pick(['buy', 'sell'], random)},venue=V${Math.floor(random() * 12)}`
    const numbers = `price=${(random() * 1000).toFixed(2)},amount=${(random() * 10).toFixed(4)}`
    const ids = `user_id=${Math.floor(random() * 1e6)}i,order_id=${row}i,qty=${Math.floor(random() * 500)}i`
    const note = `${pick(words, random)} ${pick(words, random)} ${Math.floor(random() * 1000)}`
    return `${table},${tags} ${numbers},${ids},maker=${random() < 0.5 ? 't' : 'f'},note="${note}" `
  }
}

function orderLines(table: string, seed: number): (row: number) => string {
  const random = randomNumbers(seed)
  return (row) => {
    const tags = `symbol=S${Math.floor(random() * 1000)},side=${pick(['buy', 'sell'], random)},venue=V${Math.floor(random() * 12)}`
    const doubles = `price=${(random() * 1000).toFixed(2)},amount=${(random() * 10).toFixed(4)},fee=${random().toFixed(3)}`
    const longs = `user_id=${Math.floor(random() * 1e6)}i,qty=${Math.floor(random() * 500)}i,lot=${row % 100}i`
    const note = `order ${Math.floor(random() * 1e9)} ${row}`.padEnd(35, 'x')
    return `${table},${tags} ${doubles},${longs},note="${note}" `
  }
}

function quoteLines(table: string, seed: number): (row: number) => string {
  const random = randomNumbers(seed)
  return () => {
    const bid = random() * 1000
    return `${table},symbol=S${Math.floor(random() * 100)} bid=${bid.toFixed(2)},ask=${(bid + 0.05).toFixed(2)} `
  }
}

const lineMakers: Record<Shape, (table: string, seed: number) => (row: number) => string> = {
  cpu: (table, seed) => cpuLines(table, seed),
  tsbs: tsbsLines,
  trades: tradeLines,
  market: marketLines,
  orders: orderLines,
  quotes: quoteLines,
}

/** 20 M rows of market data make ten days. */
const stepNanosByShape: Record<Shape, number> = {
  cpu: (10 * nanosPerSecond) / hostCount,
  tsbs: (10 * nanosPerSecond) / hostCount,
  trades: 1e6,
  market: 43.2e6,
  orders: 1e6,
  quotes: 10e6,
}

/** Makes a template of so many rows. The same seed makes the same lines. */
export function lineTemplate(shape: Shape, table: string, rows: number, order: RowOrder, seed: number): LineTemplate {
  return templateOf(lineMakers[shape](table, seed), rows, order, seed, stepNanosByShape[shape])
}

/** The same of any lines; `line` makes one up to its timestamp. */
export function templateOf(
  line: (row: number) => string,
  rows: number,
  order: RowOrder,
  seed: number,
  stepNanos: number,
): LineTemplate {
  const random = randomNumbers(seed + 1)
  const stamps = new Uint32Array(rows)
  const nanos = new Float64Array(rows)
  const seconds = new Int32Array(rows)
  const lines: Buffer[] = []
  let offset = 0
  for (let row = 0; row < rows; row++) {
    const at = row * stepNanos - delayOf(order, random)
    const second = Math.floor(at / nanosPerSecond)
    const fraction = String(Math.floor(at - second * nanosPerSecond)).padStart(9, '0')
    const bytes = Buffer.from(`${line(row)}0000000000${fraction}\n`)
    stamps[row] = offset + bytes.length - 20
    offset += bytes.length
    nanos[row] = at
    seconds[row] = second
    lines.push(bytes)
  }
  return { bytes: Buffer.concat(lines), stamps, nanos, seconds, rows, stepNanos }
}

function delayOf(order: RowOrder, random: () => number): number {
  if (order === 'sorted') return 0
  if (order === 'late') return random() < lateShare ? random() * 3600 * nanosPerSecond : 0
  return random() * 600 * nanosPerSecond
}

/**
 * Writes the timestamps of rows from (inclusive) to (exclusive) for the pass that begins at row `first` of the load.
 */
export function stampRows(template: LineTemplate, startSeconds: number, first: number, from: number, to: number): void {
  const { bytes, stamps, nanos, seconds, stepNanos } = template
  const passNanos = first * stepNanos
  const passSeconds = passNanos / nanosPerSecond
  if (Number.isInteger(passSeconds)) {
    const base = startSeconds + passSeconds
    for (let row = from; row < to; row++) writeSeconds(bytes, stamps[row]!, base + seconds[row]!)
    return
  }
  for (let row = from; row < to; row++) {
    const at = passNanos + nanos[row]!
    const second = Math.floor(at / nanosPerSecond)
    writeSeconds(bytes, stamps[row]!, startSeconds + second)
    writeFraction(bytes, stamps[row]! + 10, Math.floor(at - second * nanosPerSecond))
  }
}

/** The digits of 0 to 99999, five bytes each. */
const digits = Buffer.from(Array.from({ length: 100_000 }, (_, value) => String(value).padStart(5, '0')).join(''))

/** Ten digits. */
function writeSeconds(bytes: Buffer, at: number, value: number): void {
  const high = Math.floor(value / 100_000)
  writeFive(bytes, at, high)
  writeFive(bytes, at + 5, value - high * 100_000)
}

function writeFive(bytes: Buffer, at: number, value: number): void {
  const from = value * 5
  bytes[at] = digits[from]!
  bytes[at + 1] = digits[from + 1]!
  bytes[at + 2] = digits[from + 2]!
  bytes[at + 3] = digits[from + 3]!
  bytes[at + 4] = digits[from + 4]!
}

/** Nine digits. */
function writeFraction(bytes: Buffer, at: number, value: number): void {
  let rest = value
  for (let index = at + 8; index >= at; index--) {
    const tenth = Math.floor(rest / 10)
    bytes[index] = 48 + (rest - tenth * 10)
    rest = tenth
  }
}
