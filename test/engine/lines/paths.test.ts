// Goal: the line-protocol decoder in a WebAssembly kernel gives the same rows and errors as the general one in
// TypeScript, whatever the lines are. Method: random requests of valid and damaged lines for few tables, decoded by
// both; tables and columns that a request creates remain for the next.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lineHarness } from './line-harness.js'

const name = fc.constantFrom('a', 'b', 'c', 'long_column_name_of_a_metric', 'é', 'sp\\ ace')
const word = fc.constantFrom(
  'x',
  'yy',
  'host_1',
  'a text longer than sixteen bytes'.replaceAll(' ', '\\ '),
  '☃',
  '"q"',
  '',
)
const value = fc.oneof(
  fc.integer().map((number) => `${number}i`),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((number) => `${number}i`),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  fc.double({ min: -1000, max: 1000, noNaN: true }).map((number) => number.toFixed(3)),
  fc.constantFrom('t', 'F', 'true', 'NaN', '-Infinity', '1e400', 'junk', '', '17t', '-17n', '17m', '0xffi', '.5', '5.'),
  fc.constantFrom(
    '"plain"',
    '"esc\\"aped"',
    '"é"',
    '""',
    '"open',
    '"a,b c=d"',
    '"a\nb"',
    '"x\n\n"',
    '"C:\\d\\e"',
    '8u',
    '9223372036854775808u',
    '"q"r',
    '"a\\\nb"',
  ),
)
const tag = fc.tuple(name, word).map(([key, text]) => `,${key}=${text}`)
const field = fc.tuple(name, value).map(([key, text]) => `${key}=${text}`)
const time = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }).map((ts) => ` ${ts}`),
  fc.constantFrom('', ' 1704067200000000000', ' 1700000000000t', ' 1700000000m', ' -5', ' x', '  7', ' '),
)
const end = fc.constantFrom('\n', '\n', '\n', '\r\n', '\n\n')
const line = fc
  .tuple(
    fc.constantFrom('t', 'u', 'long_table_name_of_a_service', 'bad?'),
    fc.array(tag, { maxLength: 3 }),
    fc.array(field, { maxLength: 4 }),
    time,
    end,
  )
  .map(([table, tags, fields, ts, newline]) => `${table}${tags.join('')} ${fields.join(',')}${ts}${newline}`)
/** A line and copies of it: what templates are for. */
const run = fc.tuple(line, fc.integer({ min: 1, max: 4 })).map(([text, count]) => text.repeat(count))
const request = fc.record({
  text: fc.array(run, { minLength: 1, maxLength: 12 }).map((lines) => lines.join('')),
  atomic: fc.boolean(),
  unitNanos: fc.constantFrom(0n, 1n, 1000n, 1_000_000n),
})

test('both paths agree', () => {
  fc.assert(
    fc.property(fc.array(request, { minLength: 1, maxLength: 6 }), (requests) => {
      const general = lineHarness('general')
      const kernel = lineHarness('kernel')
      for (const { text, atomic, unitNanos } of requests) {
        const options = { atomic, skipBadLines: true, unitNanos }
        expect(kernel.decode(text, options)).toEqual(general.decode(text, options))
      }
      const schemas = (harness: typeof general) => [...harness.catalog.byId.values()].map(({ schema }) => schema)
      expect(schemas(kernel)).toEqual(schemas(general))
    }),
    { numRuns: 300 },
  )
})
