// Goal: lines that lack columns, have them in another order, or alternate between many tables become the same rows by the
// WebAssembly kernel as by the general parser in TypeScript, and go to the table that has their name. Method: generated
// lines, twice, since the kernel knows the columns the second time.

import { describe, expect, test } from 'vitest'
import { lineHarness } from './line-harness.js'

const ts = '1704067200000000000'
const times = { unitNanos: 1n, allNanos: false, nowMicros: 1_000_000 }

describe.each(['general', 'kernel'] as const)('%s path', (path) => {
  test('lines have columns of their table in any order, and lack some', () => {
    const harness = lineHarness(path)
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    const fieldsOf = (row: number): string[] => {
      const some = names.filter((_, index) => (row * 7 + index * 3) % 5 !== 0 || index === row % 6)
      return row % 3 === 0 ? some.reverse() : some
    }
    const tagOf = (row: number): string => (row % 4 === 0 ? '' : `,s=k${row % 10}`)
    const lines = Array.from({ length: 500 }, (_, row) => {
      const fields = fieldsOf(row).map((name) => `${name}=${row}i`)
      return `sparse${tagOf(row)}${row % 5 === 0 ? ',r=x' : ''} ${fields.join(',')} ${1704067200000000000 + row}\n`
    })
    for (let round = 0; round < 2; round++) {
      const { error, tables } = harness.decode(lines.join(''))
      expect(error).toBe(null)
      const rows = tables['sparse'] ?? []
      expect(rows.length).toBe(500)
      for (const [row, found] of rows.entries()) {
        for (const name of names) expect(found[name]).toBe(fieldsOf(row).includes(name) ? BigInt(row) : -(2n ** 63n))
        expect(found['s']).toBe(row % 4 === 0 ? null : `k${row % 10}`)
        expect(found['r']).toBe(row % 5 === 0 ? 'x' : null)
      }
    }
  })

  test('a column that no line of a batch has stays out of the batch', () => {
    const harness = lineHarness(path)
    harness.decode(`t a=1i,b=2i ${ts}\nt a=1i ${ts}\nt b=1i ${ts}\n`)
    harness.decoder.begin({ atomic: true, skipBadLines: false, partial: false, ...times })
    const text = Buffer.from(`t a=1i ${ts}\n`.repeat(3))
    const at = harness.put(text)
    harness.decoder.block(at, text.length)
    const [target] = harness.decoder.result()
    const filled = [...(target?.chunks[0]?.columns.values() ?? [])].filter((column) => column.filled > 0)
    expect(filled.map(({ id }) => target?.table.columnById(id).name).sort()).toEqual(['a', 'timestamp'])
    harness.decoder.release()
  })

  test('rows of hundreds of tables stay in order', () => {
    const harness = lineHarness(path)
    const lines = Array.from({ length: 3000 }, (_, row) => `t${row % 300} v=${row}i ${1704067200000000000 + row}\n`)
    for (let round = 0; round < 2; round++) {
      const { tables, error } = harness.decode(lines.join(''))
      expect(error).toBe(null)
      for (let table = 0; table < 300; table++)
        expect(tables[`t${table}`]?.map((row) => row['v'])).toEqual(
          Array.from({ length: 10 }, (_, n) => BigInt(n * 300 + table)),
        )
    }
  })

  test('lines go to the table that has their name now', () => {
    const harness = lineHarness(path)
    const { catalog } = harness
    harness.decode(`old v=1i ${ts}\nold v=2i ${ts}\n`)
    const table = catalog.find('old')
    if (table === undefined) throw new Error('the table is missing')
    catalog.replaceSchema(table, { ...table.schema, name: 'other' })
    const { tables } = harness.decode(`old v=3i ${ts}\nother v=4i ${ts}\nold v=5i ${ts}\n`)
    expect(tables['old']?.map((row) => row['v'])).toEqual([3n, 5n])
    expect(tables['other']?.map((row) => row['v'])).toEqual([4n])
    catalog.remove(table)
    harness.decoder.forget(table)
    expect(harness.decode(`other v="s" ${ts}\n`).tables['other']?.map((row) => row['v'])).toEqual(['s'])
  })

  test('a return before the newline is no part of a symbol', () => {
    const harness = lineHarness(path)
    const symbols = harness.decode(`t,s=a\r\n`.repeat(3)).tables['t']?.map((row) => row['s'])
    expect(symbols).toEqual(['a', 'a', 'a'])
  })
})
