// `node dist/test/crash/more-than-memory.js [--rows 2000000] [--keys 1000000] [--memory 640] [--ample 3072] [--only x]
// [--seed 1]`:
// statements whose state is several times larger than the memory of queries return the rows that they return with ample
// memory.
//
// Method: every statement of test/engine/exec/spill/spill-matrix.ts, and a statement for each pair of operators, chosen by
// the seed (spill-compositions.ts), runs in two engines over the same folder, one after the other: one with --memory MiB,
// of which queries have a tenth, and one with --ample MiB. The number of rows and the sum of the checksums of the lines
// of the result as CSV must be the same. After each statement no temporary file may be open (this is checked on Linux).

import { existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { crc32 } from 'node:zlib'
import type { Engine } from '../../engine/engine.js'
import { spillCompositions } from '../engine/exec/spill/spill-compositions.js'
import { spillMatrix } from '../engine/exec/spill/spill-matrix.js'
import { executeOptions, openTestEngine, rowsFrom } from '../support/test-engine.js'

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '2000000' },
    keys: { type: 'string', default: '1000000' },
    memory: { type: 'string', default: '640' },
    ample: { type: 'string', default: '3072' },
    only: { type: 'string', default: '' },
    seed: { type: 'string', default: '1' },
  },
})
const mebibyte = 1024 * 1024
const newline = 10
const comma = 44
/** Sums below it stay exact, however many rows there are. */
const sumModulus = 2 ** 52
const statements = [...spillMatrix, ...spillCompositions(Number(values.seed))].filter(({ name, sql }) =>
  `${name}: ${sql}`.includes(values.only),
)

interface Digest {
  readonly rows: number
  /** Does not depend on the order of the rows. */
  readonly sum: number
  readonly seconds: number
}

async function digestOf(engine: Engine, sql: string): Promise<Digest> {
  const begun = performance.now()
  const encoding = { kind: 'csv', delimiter: comma, header: false } as const
  const result = await engine.execute(sql, { ...executeOptions, encoding })
  let [rows, sum] = [0, 0]
  let rest = Buffer.alloc(0)
  if (result.kind === 'rows') {
    for await (const block of result.blocks) {
      const bytes = Buffer.concat([rest, block])
      let from = 0
      for (let to = bytes.indexOf(newline); to >= 0; to = bytes.indexOf(newline, from)) {
        sum = (sum + crc32(bytes.subarray(from, to))) % sumModulus
        rows++
        from = to + 1
      }
      rest = bytes.subarray(from)
    }
  }
  return { rows, sum, seconds: (performance.now() - begun) / 1000 }
}

/** Open files of this process; their names are removed when they are created. */
const openFiles = '/proc/self/fd'
/** The threads close the files of a query shortly after its last row. */
const closedMsMax = 10_000

function openTemporaryFiles(): string[] {
  if (!existsSync(openFiles)) return []
  return readdirSync(openFiles).flatMap((name) => {
    try {
      const path = readlinkSync(join(openFiles, name))
      return path.startsWith(temporary) ? [path] : []
    } catch {
      // It was closed in the meantime.
      return []
    }
  })
}

/** Temporary files that stay open. */
async function leftFiles(): Promise<string[]> {
  const until = performance.now() + closedMsMax
  while (openTemporaryFiles().length > 0 && performance.now() < until) await delay(10)
  return openTemporaryFiles()
}

async function makeTables(engine: Engine): Promise<void> {
  const [rows, keys] = [Number(values.rows), Number(values.keys)]
  for (const [name, first] of [
    ['t', 0],
    ['r', keys / 2],
  ] as const) {
    const step = Math.max(1, Math.floor(2_000_000_000 / rows))
    const key = `${first} + (x * 7919) % ${keys}`
    await engine.execute(
      `create table ${name} as (select timestamp_sequence(0, ${step}) ts, k * 1000000007 l, cast(k as int) i, k / 4.0 d,` +
        " concat('text ', k, ' of more than a few bytes')::varchar v, cast(concat('s', k) as symbol) y," +
        " cast(concat('00000000-0000-0000-0000-', lpad(k::string, 12, '0')) as uuid) u," +
        " cast(k as decimal(20, 2)) p, cast(concat('few ', k % 4) as symbol) few, cast(1 as int) one" +
        ` from (select ${key} k from long_sequence(${rows}))) timestamp(ts) partition by day`,
      executeOptions,
    )
    const [made] = await rowsFrom(engine, `select count() from ${name}`)
    process.stdout.write(`${name}: ${String(made)} rows\n`)
  }
}

const root = mkdtempSync(join(tmpdir(), 'penstock-memory-'))
const temporary = join(root, 'tmp')
mkdirSync(temporary)
let failures = 0
try {
  const open = (mebibytes: string): Promise<Engine> =>
    openTestEngine(join(root, 'db'), { memoryBytes: Number(mebibytes) * mebibyte, queryThreads: 2, temporary })
  const ample = await open(values.ample)
  const expected: Digest[] = []
  try {
    await makeTables(ample)
    // The engine with little memory has no room to replay the log of all rows.
    await ample.execute('checkpoint', executeOptions)
    for (const { sql } of statements) expected.push(await digestOf(ample, sql))
  } finally {
    await ample.close()
  }
  const small = await open(values.memory)
  try {
    for (const [index, { name, sql }] of statements.entries()) {
      const wanted = expected[index]
      const found = await digestOf(small, sql).catch((error: Error) => error.message)
      const left = await leftFiles()
      const isSame =
        left.length === 0 && typeof found !== 'string' && found.rows === wanted?.rows && found.sum === wanted.sum
      if (!isSame) failures++
      const outcome = typeof found === 'string' ? found : `${found.rows} rows, ${found.seconds.toFixed(1)} s`
      const ampleSeconds = wanted?.seconds.toFixed(1) ?? ''
      if (left.length > 0) process.stdout.write(`files are left: ${left.join()}\n`)
      process.stdout.write(`${isSame ? 'same' : 'FAILED'}  ${outcome} (${ampleSeconds} s)  ${name}: ${sql}\n`)
    }
  } finally {
    await small.close()
  }
  if (failures > 0 || statements.length === 0) process.exitCode = 1
} finally {
  rmSync(root, { recursive: true, force: true })
}
process.stdout.write(`${statements.length} statements, ${failures} failed\n`)
