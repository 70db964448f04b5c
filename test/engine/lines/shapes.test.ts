// Goal: lines of any shape become the same rows and errors by the WebAssembly kernel as by the general parser in
// TypeScript, also when the tables change between requests. Method: random requests over tables and columns whose names
// differ in case, escapes or their last character; lines that lack columns, or have them in any order, twice, or with
// another type; requests of several blocks; between requests tables and columns are dropped, renamed and created.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lineHarness } from './line-harness.js'

type Harness = ReturnType<typeof lineHarness>

const tables = [
  't',
  'T',
  'tab\\ le',
  'long_table_name_of_a',
  'long_table_name_of_a_service',
  'long_table_name_of_a_servicf',
]
const tags = ['s', 'S', 'r', 'sp\\ ace', 'long_name_of_a_tag_1', 'long_name_of_a_tag_2', 'q.r', 'q_r']
/** By the first character after `f_`: the type that lines usually give the field. */
const fields = [
  'f_d1',
  'f_D1',
  'f_d2',
  'f_i1',
  'f_i2',
  'f_b',
  'f_t',
  'f_n',
  'f_s1',
  'f_s2',
  'f_i\\ 3',
  'f_d.4',
  'f_d_4',
  'f_double_of_a_long_name',
]

const plainValues: Record<string, fc.Arbitrary<string>> = {
  d: fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc.constantFrom(
      '1e308',
      '1e309',
      '-1.8e308',
      '1.7976931348623157e308',
      '1.7976931348623159e308',
      '1e-400',
      '7i',
      '-0',
    ),
  ),
  D: fc.integer().map((number) => `${number}.5`),
  i: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((number) => `${number}i`),
  b: fc.constantFrom('t', 'F', 'true', 'tRUE'),
  t: fc.integer().map((number) => `${number}t`),
  n: fc.integer().map((number) => `${number}n`),
  s: fc.constantFrom('"plain"', '""', '"é"', '"a,b c=d"', '"a\\"b"', '"a\nb"', `"${'x'.repeat(70)}"`),
}
const anyValue = fc.oneof(...Object.values(plainValues), fc.constantFrom('', 'junk', '"open', 'NaN', '1_0i', '5u'))
const field = (name: string): fc.Arbitrary<string> =>
  fc
    .oneof({ weight: 100, arbitrary: plainValues[name.charAt(2)] ?? anyValue }, anyValue)
    .map((value) => `${name}=${value}`)
const word = fc.constantFrom(
  'x',
  'yy',
  'a\\ b',
  'a\\,b\\=c',
  '"q"',
  'é',
  'exactly_16_bytes',
  'more_than_sixteen_bytes',
  'c\\\\',
  '',
)
const tag = (name: string): fc.Arbitrary<string> => word.map((text) => `,${name}=${text}`)
const time = fc.oneof(
  { weight: 60, arbitrary: fc.bigInt({ min: 10n ** 18n, max: 2n * 10n ** 18n }).map((ts) => ` ${ts}`) },
  { weight: 20, arbitrary: fc.constantFrom('', ' 1700000000000000t', ' 1700000000000000001n', ' 1700000000m', ' ') },
  fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }).map((ts) => ` ${ts}`),
  fc.constantFrom(' -5', ' x'),
)
/** Lines whose names have a dot only where it is replaced. */
function lineOf(isReplaced: boolean): fc.Arbitrary<string> {
  const some = (names: string[], one: (name: string) => fc.Arbitrary<string>, most: number): fc.Arbitrary<string[]> =>
    fc.array(fc.oneof(...names.filter((name) => isReplaced || !name.includes('.')).map(one)), { maxLength: most })
  return fc
    .tuple(
      fc.constantFrom(...tables),
      some(tags, tag, 4),
      some(fields, field, 6),
      time,
      fc.constantFrom('\n', '\n', '\n', '\r\n', '\n\n', '\n#, x=1\n'),
    )
    .map(([table, first, rest, ts, end]) => {
      const list = rest.length === 0 ? '' : ` ${rest.join(',')}`
      return `${table}${first.join('')}${list}${ts}${end}`
    })
}

function requestOf(isReplaced: boolean) {
  const block = fc.array(lineOf(isReplaced), { minLength: 1, maxLength: 40, size: 'max' })
  return fc.record({
    text: fc.array(
      block.map((lines) => lines.join('')),
      { minLength: 1, maxLength: 3 },
    ),
    ...{ atomic: fc.boolean(), skipBadLines: fc.constantFrom(true, true, false), partial: fc.boolean() },
    unitNanos: fc.constantFrom(0n, 1n, 1n, 1000n),
  })
}

/** What happens between requests, to a table given by its number among all. */
const changes: Record<string, (harness: Harness, nth: number) => void> = {
  none: () => {},
  drop: (harness, nth) => {
    const table = tableOf(harness, nth)
    if (table === undefined) return
    harness.catalog.remove(table)
    harness.decoder.forget(table)
  },
  rename: (harness, nth) => {
    const table = tableOf(harness, nth)
    const name = (tables[nth % tables.length] ?? '').replace('\\', '')
    if (table === undefined || harness.catalog.find(name) !== undefined) return
    harness.catalog.replaceSchema(table, { ...table.schema, name })
  },
  renameColumn: (harness, nth) => {
    const table = tableOf(harness, nth)
    const column = table?.schema.columns[nth % table.schema.columns.length]
    if (table === undefined || column === undefined || column.id === table.schema.timestampId) return
    const columns = table.schema.columns.map((other) => (other === column ? { ...other, name: `was_${nth}` } : other))
    harness.catalog.replaceSchema(table, { ...table.schema, columns })
  },
  dropColumn: (harness, nth) => {
    const table = tableOf(harness, nth)
    const column = table?.schema.columns[nth % table.schema.columns.length]
    if (table === undefined || column === undefined || column.id === table.schema.timestampId) return
    const columns = table.schema.columns.map((other) => (other === column ? { ...other, dropped: true } : other))
    harness.catalog.replaceSchema(table, { ...table.schema, columns })
  },
}

function tableOf({ catalog }: Harness, nth: number) {
  return [...catalog.byId.values()][nth % Math.max(1, catalog.byId.size)]
}

function stepsOf(nameReplacement: string) {
  const change = fc.constantFrom(...Object.keys(changes), 'none')
  const step = fc.record({ request: requestOf(nameReplacement !== ''), change, nth: fc.nat(1000) })
  return fc.array(step, { minLength: 1, maxLength: 6 })
}

test.each(['', '_'])(
  'both paths agree about lines of any shape, with the replacement "%s" in names',
  (nameReplacement) => {
    let rows = 0
    fc.assert(
      fc.property(stepsOf(nameReplacement), (steps) => {
        const general = lineHarness('general', { nameReplacement })
        const kernel = lineHarness('kernel', { nameReplacement })
        for (const { request, change, nth } of steps) {
          const { text, ...options } = request
          const expected = general.decode(text, options)
          expect(kernel.decode(text, options)).toEqual(expected)
          for (const found of Object.values(expected.tables)) rows += found.length
          for (const harness of [general, kernel]) changes[change]?.(harness, nth)
        }
        const schemas = (harness: Harness) => [...harness.catalog.byId.values()].map(({ schema }) => schema)
        expect(schemas(kernel)).toEqual(schemas(general))
      }),
      { numRuns: 80 },
    )
    expect(rows).toBeGreaterThan(2000)
  },
)
