// `node dist/test/crash/parquet-fuzz.js [--files n] [--seed n] [--python command]`: reads damaged Parquet files by
// read_parquet() and COPY FROM. The server must survive, respond within the deadline with rows or an error that names
// the file, and keep serving others.
//
// The files are written by pyarrow in every encoding, codec, page version and nesting, if Python has it
// (parquet_files.py), and by the tests' own writer. Damage: changed bytes, truncation, impossible run lengths and
// sizes, exchanged and repeated ranges. A file that caused a fault is kept, and its name is printed.

import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type pg from 'pg'
import { parquetThrift } from '../../engine/storage/part/parquet-thrift.js'
import { repositoryRoot } from '../support/docs/source-tree.js'
import type { Raw } from '../support/parquet-encodings.js'
import { codecs, parquetFile, type WrittenColumn } from '../support/parquet-writer.js'
import { createRandom, type Random } from '../support/random.js'
import { TestServer } from '../support/server.js'

const { values } = parseArgs({
  options: {
    files: { type: 'string', default: '500' },
    seed: { type: 'string', default: '1' },
    python: { type: 'string', default: 'python3' },
  },
})
/** Requests at one time. */
const clients = 4
const deadlineMs = 20_000
/** What the words of an error must not be: those of the language, of a library, or of a fault of ours. */
const rawWords =
  /undefined|not a function|Cannot read|is not iterable|out of bounds|RangeError|TypeError|array length|call stack|unreachable|internal error|BigInt|thrift|Thrift/

interface Healthy {
  readonly name: string
  readonly bytes: Buffer
}

// Healthy files -----------------------------------------------------------------------------------------------------

function ownFiles(): Healthy[] {
  const forms = Object.keys(codecs).filter((codec) => codec !== 'lzo') as (keyof typeof codecs)[]
  return forms.flatMap((codec) =>
    ([1, 2] as const).flatMap((version) =>
      [true, false].map((oldLevels) => ({
        name: `own ${codec} ${version} ${oldLevels ? 'old' : 'new'}`,
        bytes: parquetFile(ownColumns(), { codec, version, oldLevels, pageRows: 40, groupRows: 70 }),
      })),
    ),
  )
}

function ownColumns(): WrittenColumn[] {
  const { types } = parquetThrift()
  const text = { converted_type: types.ConvertedType.UTF8 }
  const decimal = { converted_type: types.ConvertedType.DECIMAL, precision: 12, scale: 2, type_length: 6 }
  const rows = (make: (index: number) => Raw): (Raw | null)[] =>
    Array.from({ length: 100 }, (_, index) => (index % 9 === 4 ? null : make(index)))
  const names = rows((index) => Buffer.from(`name ${index >> 2}`))
  const longs = rows((index) => BigInt(index) * 1_000_003n)
  const doubles = rows((index) => index / 3)
  const fixed = rows((index) => Buffer.from(String(index).padStart(6, '0')))
  const column = (name: string, physical: number, encoding: number, all: WrittenColumn['values'], element = {}) => ({
    ...{ name, physical, encoding, values: all, element },
  })
  return [
    ...[0, 5, 9, 2, 8].map((encoding) => column(`long${encoding}`, 2, encoding, longs)),
    ...[0, 6, 7, 2, 8].map((encoding) => column(`text${encoding}`, 6, encoding, names, text)),
    ...[0, 7, 9, 8].map((encoding) => column(`fixed${encoding}`, 7, encoding, fixed, decimal)),
    ...[0, 3].map((encoding) =>
      column(
        `boolean${encoding}`,
        0,
        encoding,
        rows((index) => index % 3 === 0),
      ),
    ),
    ...[0, 8].map((encoding) =>
      column(
        `int96${encoding}`,
        3,
        encoding,
        rows(() => Buffer.from('0000000000000000803d2500', 'hex')),
      ),
    ),
    ...[0, 9, 8].map((encoding) => column(`double${encoding}`, 5, encoding, doubles)),
    ...[0, 8].map((encoding) =>
      column(
        `list${encoding}`,
        5,
        encoding,
        doubles.map((value, index) => (value === null ? null : Array(index % 4).fill(value))),
      ),
    ),
  ]
}

/** Those of pyarrow; none where it is missing. */
function pythonFiles(folder: string): Healthy[] {
  try {
    execFileSync(values.python, ['-c', 'import pyarrow'], { stdio: 'ignore' })
  } catch {
    process.stdout.write('pyarrow is missing: its files are left out\n')
    return []
  }
  execFileSync(values.python, [join(repositoryRoot, 'test/crash/parquet_files.py'), folder, '120'], { stdio: 'ignore' })
  return readdirSync(folder)
    .sort()
    .map((name) => ({ name, bytes: readFileSync(join(folder, name)) }))
}

// Damage ------------------------------------------------------------------------------------------------------------

type Damage = (bytes: Buffer, random: Random) => Buffer

/** Lengths of runs, and varints, of more than there is. */
const lengths = [
  'feffffff0f01',
  'feffffff0f00',
  'ffffffff0f',
  'ffffffff07',
  'ffffffffffffffffff01',
  'fcffffff0f',
  '8080808010',
  '00000080',
  'ffffffff',
]

const damages: Readonly<Record<string, Damage>> = {
  bytes: (bytes, random) => {
    for (let i = 0; i <= random.below(4); i++) bytes[random.below(bytes.length)] = random.below(256)
    return bytes
  },
  bits: (bytes, random) => {
    const at = random.below(bytes.length)
    bytes[at] = (bytes[at] ?? 0) ^ (1 << random.below(8))
    return bytes
  },
  footer: (bytes, random) => {
    const [start, size] = footerOf(bytes)
    for (let i = 0; i <= random.below(3); i++) bytes[start + random.below(size)] = random.below(256)
    return bytes
  },
  'length in the footer': (bytes, random) => {
    const [start, size] = footerOf(bytes)
    return lengthAt(bytes, random, start + random.below(size))
  },
  length: (bytes, random) => lengthAt(bytes, random, random.below(bytes.length)),
  'first page': (bytes, random) => lengthAt(bytes, random, 4 + random.below(60)),
  end: (bytes, random) => bytes.subarray(0, random.below(bytes.length)),
  middle: (bytes, random) => {
    const [footer] = footerOf(bytes)
    const from = 4 + random.below(Math.max(1, footer - 4))
    return Buffer.concat([bytes.subarray(0, from), bytes.subarray(Math.min(footer, from + 1 + random.below(200)))])
  },
  more: (bytes, random) => {
    const at = random.below(bytes.length)
    const from = random.below(bytes.length)
    return Buffer.concat([
      bytes.subarray(0, at),
      bytes.subarray(from, from + 1 + random.below(100)),
      bytes.subarray(at),
    ])
  },
  swapped: (bytes, random) => {
    const size = 1 + random.below(Math.max(1, Math.min(400, bytes.length >> 2)))
    const [one, other] = [random.below(bytes.length - size), random.below(bytes.length - size)]
    const kept = Buffer.from(bytes.subarray(one, one + size))
    bytes.copyWithin(one, other, other + size)
    kept.copy(bytes, other)
    return bytes
  },
  filled: (bytes, random) => {
    const at = random.below(bytes.length)
    return bytes.fill(random.below(2) * 255, at, Math.min(bytes.length, at + 1 + random.below(60)))
  },
}

function footerOf(bytes: Buffer): [start: number, size: number] {
  const size = bytes.readUInt32LE(bytes.length - 8)
  return [bytes.length - 8 - size, size]
}

function lengthAt(bytes: Buffer, random: Random, at: number): Buffer {
  const length = Buffer.from(lengths[random.below(lengths.length)] ?? '', 'hex')
  length.copy(bytes, at)
  return bytes
}

// Asking ------------------------------------------------------------------------------------------------------------

class Fuzz {
  readonly #server = new TestServer(['memory.bytes=1g'])
  readonly #kept = mkdtempSync(join(tmpdir(), 'penstock-parquet-fuzz-'))
  readonly #found = { rows: 0, errors: 0, faults: 0, shortages: 0 }
  #healthy: readonly Healthy[] = []
  #next = 0
  #slowestMs = 0

  async run(): Promise<void> {
    const began = Date.now()
    const made = join(this.#kept, 'made')
    this.#healthy = [...ownFiles(), ...pythonFiles(made)]
    mkdirSync(this.#imports, { recursive: true })
    await this.#server.start()
    try {
      await this.#askHealthy()
      await Promise.all(Array.from({ length: clients }, () => this.#client()))
      await this.#askHealthy()
      await this.#server.end()
    } catch (error) {
      this.#fault('', error instanceof Error ? error.message : String(error))
    }
    await this.#server.remove()
    const { rows, errors, faults, shortages } = this.#found
    process.stdout.write(
      `${values.files} damaged files of ${this.#healthy.length}, seed ${values.seed}: ${rows} answers with rows, ${errors} with an error, ${shortages} short of memory, ${faults} faults, slowest ${this.#slowestMs} ms, ${Math.round((Date.now() - began) / 1000)} s\n`,
    )
    if (faults === 0) rmSync(this.#kept, { recursive: true, force: true })
    else process.exitCode = 1
  }

  get #imports(): string {
    return join(this.#server.root, 'import')
  }

  /** A healthy file has its rows, before and behind the damaged ones. */
  async #askHealthy(): Promise<void> {
    for (const { name, bytes } of this.#healthy) {
      if (name === 'nested.parquet') continue
      writeFileSync(join(this.#imports, 'healthy.parquet'), bytes)
      const { status, text } = await this.#exec("select count() from (select * from read_parquet('healthy.parquet'))")
      if (status !== 200 || text.includes('[[0]]')) this.#fault(name, `a healthy file: ${text}`)
    }
  }

  async #client(): Promise<void> {
    const wire = await this.#server.connect()
    for (let index = this.#next++; index < Number(values.files); index = this.#next++) await this.#ask(index, wire)
    // The server ends connections that are still open when it stops, which the client would report as a fault.
    await wire.end()
  }

  async #ask(index: number, wire: pg.Client): Promise<void> {
    const random = createRandom(Number(values.seed) * 1_000_003 + index)
    const healthy = this.#healthy[random.below(this.#healthy.length)] as Healthy
    const kinds = Object.keys(damages)
    const kind = kinds[random.below(kinds.length)] as string
    const name = `f${index}.parquet`
    const path = join(this.#imports, name)
    const what = `${name} (${healthy.name}, ${kind})`
    writeFileSync(path, (damages[kind] as Damage)(Buffer.from(healthy.bytes), random))
    await this.#timed(what, path, () => this.#read(name))
    await this.#timed(what, path, () => this.#copy(index, name, wire))
    const probe = await this.#exec('select 1')
    if (probe.status !== 200) this.#fault(what, `other queries: ${probe.text}`)
    rmSync(path)
  }

  async #timed(what: string, path: string, ask: () => Promise<string | null>): Promise<void> {
    const begin = Date.now()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('no answer within the deadline')), deadlineMs)
    })
    const fault = await Promise.race([ask(), late]).finally(() => clearTimeout(timer))
    this.#slowestMs = Math.max(this.#slowestMs, Date.now() - begin)
    if (fault === null) return
    copyFileSync(path, join(this.#kept, path.split('/').at(-1) as string))
    this.#fault(what, fault)
  }

  async #exec(sql: string): Promise<{ status: number; text: string }> {
    const query = new URLSearchParams({ query: sql })
    const answer = await fetch(`http://${this.#server.address('http')}/exec?${query}`)
    return { status: answer.status, text: await answer.text() }
  }

  /** What is wrong with the answer; null when it is right. */
  async #read(name: string): Promise<string | null> {
    const { status, text } = await this.#exec(`select * from read_parquet('${name}')`)
    if (status === 200) {
      this.#found.rows++
      // Answers in JSON that break off hold an error at their end.
      if (!text.includes('"error"')) return null
    }
    return this.#judge(status, text, name)
  }

  async #copy(index: number, name: string, wire: pg.Client): Promise<string | null> {
    try {
      await wire.query(`copy fuzz${index} from '${name}'`)
      this.#found.rows++
      await wire.query(`drop table fuzz${index}`)
      return null
    } catch (error) {
      const { message, code = '' } = error as { message: string; code?: string }
      return this.#judge(code.startsWith('53') ? 503 : code === 'XX000' ? 500 : 400, message, name)
    }
  }

  #judge(status: number, text: string, name: string): string | null {
    if (status === 503) {
      this.#found.shortages++
      return null
    }
    this.#found.errors++
    if (rawWords.test(text)) return `raw words: ${text}`
    if (status >= 500) return `status ${status}: ${text}`
    if (text.includes('cannot be read') && !text.includes(`[file=${name}`)) return `without its place: ${text}`
    return null
  }

  #fault(what: string, message: string): void {
    this.#found.faults++
    process.stdout.write(`${what}: ${message.slice(0, 500)} [kept in ${this.#kept}]\n`)
  }
}

await new Fuzz().run()
