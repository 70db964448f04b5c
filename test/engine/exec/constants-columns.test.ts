// Goal: an SQL expression has the same value and type, or is an error, whether its operands are constants, columns (of
// one row or of three) or parameters. Two differences are allowed: a division of DECIMAL constants by zero, and strings
// as parameters that cannot be converted, are errors where columns give NULL.
//
// Method: random expressions over typed operands, written in these three ways and run by one engine. CONSTANTS_CASES
// sets the number of cases, CONSTANTS_SEED the first seed; a failure prints the seeds and the expressions.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Engine } from '../../../engine/engine.js'
import { type DataType, dataType } from '../../../engine/types/column-types.js'
import type { Value } from '../../../engine/types/value.js'
import { createRandom, type Random } from '../../support/random.js'
import { executeOptions, openTestEngine } from '../../support/test-engine.js'

const cases = Number(process.env['CONSTANTS_CASES'] ?? 800)
const firstSeed = Number(process.env['CONSTANTS_SEED'] ?? 400)
const rowCount = 24
/** Expressions that are asked for together. */
const batch = 8

interface Operand {
  readonly column: string
  readonly type: DataType
  /** How SQL declares and casts it. */
  readonly name: string
  /** Strings of literals, NULL among them. */
  readonly values: readonly string[]
}

const times = ['2024-02-29T23:59:59.999999Z', '1969-12-31T23:59:59.5Z', '2000-01-01T00:00:00Z']
const strings = ['abc', 'ABC', '', '12', '-7.5', 'a😀b', '2024-01-01', 'true']

function operand(column: string, type: DataType, name: string, values: readonly string[]): Operand {
  return { column, type, name, values }
}

const operands: readonly Operand[] = [
  operand('by', dataType('BYTE'), 'byte', ['0', '1', '-128', '127', '7']),
  operand('s', dataType('SHORT'), 'short', ['0', '3', '-32768', '32767']),
  operand('i', dataType('INT'), 'int', ['null', '0', '5', '-2147483647', '2147483647', '65536']),
  operand('l', dataType('LONG'), 'long', [
    'null',
    '0',
    '-9',
    '9223372036854775807',
    '-9223372036854775807',
    '3000000000',
  ]),
  operand('f', dataType('FLOAT'), 'float', ['null', '0.0', '1.5', '-0.1', '3.0e38', '16777216.0']),
  operand('d', dataType('DOUBLE'), 'double', ['null', '0.0', '2.5', '-0.1', '1e308', '9007199254740993.0']),
  operand('dc', dataType('DECIMAL', 10, 2), 'decimal(10,2)', ['null', '0.00m', '1.25m', '-99999.99m']),
  operand('st', dataType('STRING'), 'string', ['null', ...strings.map((text) => `'${text}'`)]),
  operand('v', dataType('VARCHAR'), 'varchar', ['null', ...strings.map((text) => `'${text}'`)]),
  operand('ts', dataType('TIMESTAMP'), 'timestamp', ['null', ...times.map((text) => `'${text}'`)]),
  operand('n', dataType('TIMESTAMP_NS'), 'timestamp_ns', ['null', ...times.map((text) => `'${text}'`)]),
  operand('da', dataType('DATE'), 'date', ['null', ...times.map((text) => `'${text}'`)]),
  operand('bo', dataType('BOOLEAN'), 'boolean', ['true', 'false']),
]

/** An expression with holes for its operands: the text between them. */
interface Template {
  readonly text: string
  readonly holes: readonly Operand[]
}

type Kind = 'number' | 'text' | 'time' | 'condition'
const kinds: readonly Kind[] = ['number', 'text', 'time', 'condition']
const ofKind: Readonly<Record<Kind, readonly string[]>> = {
  number: ['by', 's', 'i', 'l', 'f', 'd', 'dc'],
  text: ['st', 'v'],
  time: ['ts', 'n', 'da'],
  condition: ['bo'],
}

const forms: Readonly<Record<Kind, readonly string[]>> = {
  number: [
    ...['(N + N)', '(N - N)', '(N * N)', '(N / N)', '(N % N)', '-(N)', 'abs(N)', 'sign(N)', 'floor(N)', 'ceil(N)'],
    ...['round(N, 1)', 'coalesce(N, N)', 'nullif(N, N)', 'greatest(N, N)', 'least(N, N)', 'length(T)', 'ascii(T)'],
    ...[
      '(N)::int',
      '(N)::long',
      '(N)::double',
      'cast(N as float)',
      '(N)::short',
      '(N)::byte',
      '(T)::int',
      '(T)::double',
    ],
    ...['case when C then N else N end', 'extract(hour from M)', 'year(M)', '(M)::long', "datediff('h', M, M)"],
  ],
  text: [
    ...[
      '(T || T)',
      'upper(T)',
      'lower(T)',
      'left(T, 2)',
      'right(T, 2)',
      'substring(T, 1, 2)',
      "lpad(T, 5, 'x')",
      'trim(T)',
    ],
    ...[
      '(N)::string',
      '(N)::varchar',
      '(M)::string',
      '(C)::string',
      'coalesce(T, T)',
      'concat(T, N)',
      'case when C then T else T end',
    ],
    "replace(T, 'a', 'bb')",
  ],
  time: [
    ...[
      "dateadd('d', 3, M)",
      "date_trunc('hour', M)",
      '(M)::timestamp',
      '(M)::date',
      '(M)::timestamp_ns',
      'coalesce(M, M)',
    ],
    ...['(T)::timestamp', '(T)::date', 'case when C then M else M end'],
  ],
  condition: [
    ...[
      '(N = N)',
      '(N < N)',
      '(N >= N)',
      '(N <> N)',
      '(T = T)',
      '(T < T)',
      '(M < M)',
      '(M = M)',
      '(C and C)',
      '(C or C)',
    ],
    ...[
      'not (C)',
      '(N is null)',
      '(T is null)',
      '(M is not null)',
      '(N between N and N)',
      "(T like 'a%')",
      '(N in (1, 2, 5))',
    ],
  ],
}

const letters: Readonly<Record<string, Kind>> = { N: 'number', T: 'text', M: 'time', C: 'condition' }
const hole = '\u0001'

function templateOf(random: Random, kind: Kind, depth: number): Template {
  if (depth === 0 || random.chance(0.2)) {
    const column = random.pick(ofKind[kind])
    return { text: hole, holes: operands.filter((each) => each.column === column) }
  }
  const holes: Operand[] = []
  const text = random.pick(forms[kind]).replace(/\b[NTMC]\b/g, (letter) => {
    const part = templateOf(random, letters[letter] as Kind, depth - 1)
    holes.push(...part.holes)
    return part.text
  })
  return { text, holes }
}

function filled({ text, holes }: Template, write: (operand: Operand, index: number) => string): string {
  let index = 0
  return text.replaceAll(hole, () => write(holes[index] as Operand, index++))
}

interface Answer {
  readonly text: string
  /** It tells of a value. */
  readonly isError: boolean
}

const directory = mkdtempSync(join(tmpdir(), 'penstock-constants-'))
let engine: Engine

function literalAt({ values }: Operand, row: number): string {
  return values[row % values.length] as string
}

function writtenAt(each: Operand, row: number): string {
  return `cast(${literalAt(each, row)} as ${each.name})`
}

beforeAll(async () => {
  engine = await openTestEngine(directory)
  const declared = operands.map(({ column, name }) => `${column} ${name}`).join(', ')
  await run(`create table vals (id int, ${declared}, at timestamp) timestamp(at) partition by day`)
  for (let row = 0; row < rowCount; row++) {
    const list = operands.map((each) => writtenAt(each, row)).join(', ')
    await run(`insert into vals select ${row}, ${list}, ${row}::timestamp`)
  }
})

afterAll(async () => {
  await engine?.close()
  rmSync(directory, { recursive: true, force: true })
})

type Parameters = readonly { readonly value: Value; readonly type: DataType }[]

async function run(sql: string, parameters: Parameters = []): Promise<{ types: string[]; rows: Value[][] }> {
  const result = await engine.execute(sql, { ...executeOptions, parameters })
  const rows: Value[][] = []
  if (result.kind !== 'rows') return { types: [], rows }
  for await (const some of result.values) for (const row of some) rows.push([...row])
  return { types: result.columns.map(({ type }) => type.name), rows }
}

/** How the templates are written, as one text of each, and the parameters for them. */
type Write = (template: Template) => { readonly text: string; readonly parameters: Parameters }

/** All at once; where one is an error, each alone. */
async function answersOf(templates: readonly Template[], write: Write, rest: string): Promise<Answer[]> {
  const written = templates.map((template) => write(template))
  const parameters = written.flatMap((each) => each.parameters)
  let count = 0
  const list = written.map(({ text }) => text.replaceAll('$?', () => `$${++count}`))
  try {
    const { types, rows } = await run(`select ${list.join(', ')} ${rest}`, parameters)
    return templates.map((_, at) => ({ text: `${types[at]} ${shown(rows[0]?.[at] ?? null)}`, isError: false }))
  } catch (error) {
    const alone = { text: error instanceof Error ? error.message : String(error), isError: true }
    if (templates.length === 1) return [alone]
    const answers: Answer[] = []
    for (const template of templates) answers.push(...(await answersOf([template], write, rest)))
    return answers
  }
}

function shown(value: Value): string {
  if (typeof value === 'number' && !Number.isFinite(value)) return 'null'
  return Object.is(value, -0) ? '0' : String(value)
}

/** Recorded: a DECIMAL constant is not divided by zero; the quotient of columns is NULL. */
const byZero = "'/' operation failed: Division by zero"

/** Recorded: a text that is handed over, and a character that is written, are refused where a column's gives NULL. */
const refused = /^(inconvertible value|invalid value)/

function isSame(left: Answer, right: Answer): boolean {
  return (left.isError && right.isError) || (left.isError === right.isError && left.text === right.text)
}

const asColumns: Write = (template) => ({ text: filled(template, ({ column }) => column), parameters: [] })

test('constants, columns and parameters agree', { timeout: 3_600_000 }, async () => {
  const { rows } = await run(`select ${operands.map(({ column }) => column).join(', ')} from vals order by id`)
  const differences: string[] = []
  for (let seed = firstSeed; seed < firstSeed + cases && differences.length < 20; seed += batch) {
    const random = createRandom(seed)
    const row = random.below(rowCount - 2)
    const templates = Array.from({ length: batch }, () => templateOf(random, random.pick(kinds), random.between(1, 3)))
    const givenOf = (each: Operand) => ({ value: rows[row]?.[operands.indexOf(each)] ?? null, type: each.type })
    const asConstants: Write = (each) => ({ text: filled(each, (hole) => writtenAt(hole, row)), parameters: [] })
    const asParameters: Write = (each) => ({ text: filled(each, () => '$?'), parameters: each.holes.map(givenOf) })
    const constants = await answersOf(templates, asConstants, '')
    const ones = await answersOf(templates, asColumns, `from vals where id = ${row}`)
    const threes = await answersOf(templates, asColumns, `from vals where id >= ${row} and id < ${row + 3} order by id`)
    const bounds = await answersOf(templates, asParameters, '')
    for (const [at, template] of templates.entries()) {
      const [constant, one, three, bound] = [constants, ones, threes, bounds].map((all) => all[at] as Answer)
      if (constant === undefined || one === undefined || three === undefined || bound === undefined) continue
      if (constant.text === byZero) continue
      // The rows beside it have values of their own, which may be errors.
      const isOthers = three.isError && (await isErrorBeside(template, row))
      const isRefused =
        bound.isError &&
        refused.test(bound.text) &&
        template.holes.some(({ type }) => type.name === 'STRING' || type.name === 'VARCHAR')
      if (isSame(constant, one) && (isOthers || isSame(constant, three)) && (isRefused || isSame(constant, bound)))
        continue
      const found = JSON.stringify({ constant, one, three, bound })
      differences.push(`seed ${seed}: ${asConstants(template).text}\n  ${asColumns(template).text}\n  ${found}`)
    }
  }
  expect(differences.length, `\n${differences.join('\n')}\n`).toBe(0)
})

async function isErrorBeside(template: Template, row: number): Promise<boolean> {
  for (const id of [row + 1, row + 2]) {
    const [answer] = await answersOf([template], asColumns, `from vals where id = ${id}`)
    if (answer?.isError) return true
  }
  return false
}
