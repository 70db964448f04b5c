// Goal: the console's result grid shows the right rows at every scroll position, also of results that are taller than
// an element can be; values keep all digits when they are shown, sorted and copied.

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  columnWidths,
  rowsTop,
  scrollTopOf,
  scrollToRow,
  spacePixels,
  spacePixelsMax,
  visibleRows,
} from '../../../../gateways/console/app/grid-maths.js'
import {
  cellText,
  compareValues,
  copyText,
  durationText,
  grouped,
  millisOf,
  sizeText,
} from '../../../../gateways/console/app/values.js'

const viewport = (rowCount: number) => ({ rowCount, rowPixels: 24, viewPixels: 480 })

describe('the virtual grid', () => {
  test('draws what is visible, and some rows around it', () => {
    expect(visibleRows(viewport(100), 0, 5)).toEqual({ first: 0, end: 25, offset: 0 })
    expect(visibleRows(viewport(100), 240, 5)).toEqual({ first: 5, end: 35, offset: 120 })
    expect(visibleRows(viewport(3), 0, 5)).toEqual({ first: 0, end: 3, offset: 0 })
    expect(visibleRows(viewport(0), 0, 5)).toMatchObject({ first: 0, end: 0 })
  })

  test('a result of millions fits into an element, from its first to its last row', () => {
    const large = viewport(50_000_000)
    expect(spacePixels(large)).toBe(spacePixelsMax)
    expect(visibleRows(large, 0, 0).first).toBe(0)
    const last = visibleRows(large, spacePixelsMax - large.viewPixels, 0)
    expect(last.end).toBe(large.rowCount)
    expect(last.end - last.first).toBe(20)
  })

  test('each row can be brought into view', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100_000_000 }), fc.nat(), fc.nat(), (rowCount, seed, from) => {
        const size = viewport(rowCount)
        const row = seed % rowCount
        const top = scrollToRow(size, from % (spacePixels(size) + 1), row)
        const { first, end } = visibleRows(size, top, 1)
        expect(row).toBeGreaterThanOrEqual(first)
        expect(row).toBeLessThan(end)
      }),
    )
  })

  test('positions lead back to themselves', () => {
    const large = viewport(30_000_000)
    expect(rowsTop(large, scrollTopOf(large, 123_456_789))).toBeCloseTo(123_456_789, 0)
    expect(scrollToRow(viewport(100), 0, 3)).toBe(0)
  })

  test('columns are as wide as their values, within bounds', () => {
    const [narrow = 0, wide = 0] = columnWidths(['a', 'text'], [['1', 'x'.repeat(500)]])
    expect(narrow).toBe(48)
    expect(wide).toBe(420)
  })
})

describe('values', () => {
  const columns = [
    { name: 'n', type: 'LONG' },
    { name: 's|t', type: 'VARCHAR' },
  ]
  const rows = [
    ['9007199254740993', 'a,"b"'],
    [null, ''],
    ['-1', null],
  ]

  test('are copied exactly in each format', () => {
    expect(copyText('text', columns, rows)).toBe('n\ts|t\n9007199254740993\ta,"b"\n\t\n-1\t\n')
    expect(copyText('csv', columns, rows)).toBe('n,s|t\n9007199254740993,"a,""b"""\n,""\n-1,\n')
    expect(copyText('json', columns, rows)).toBe(
      '[\n  {"n": 9007199254740993, "s|t": "a,\\"b\\""},\n  {"n": null, "s|t": ""},\n  {"n": -1, "s|t": null}\n]\n',
    )
    expect(copyText('markdown', columns, rows)).toBe(
      '| n | s\\|t |\n| --: | --- |\n| 9007199254740993 | a,"b" |\n| NULL |  |\n| -1 | NULL |\n',
    )
  })

  test('are compared exactly, NULL first', () => {
    const sorted = ['9007199254740993', null, '9007199254740992', '-9223372036854775807'].sort((x, y) =>
      compareValues('LONG', x, y),
    )
    expect(sorted).toEqual([null, '-9223372036854775807', '9007199254740992', '9007199254740993'])
    expect([10, 9, null].sort((x, y) => compareValues('DOUBLE', x, y))).toEqual([null, 9, 10])
    expect(['b', 'a'].sort((x, y) => compareValues('SYMBOL', x, y))).toEqual(['a', 'b'])
  })

  test('have a text, and NULL has none', () => {
    expect([cellText(null), cellText(''), cellText(false), cellText([1, [2]]), cellText(1.5)]).toEqual([
      null,
      '',
      'false',
      '[1,[2]]',
      '1.5',
    ])
  })

  test('timestamps keep their fractions of milliseconds', () => {
    expect(millisOf('2026-03-02T00:00:00.000001Z') - Date.parse('2026-03-02T00:00:00Z')).toBeCloseTo(0.001, 3)
    expect(millisOf('2026-03-02T00:00:00Z')).toBe(Date.parse('2026-03-02T00:00:00Z'))
    expect(millisOf('no time')).toBeNaN()
  })

  test('numbers as people read them', () => {
    expect([grouped(1234567), grouped('-1000'), grouped(999)]).toEqual(['1,234,567', '-1,000', '999'])
    expect([sizeText(0), sizeText(1500), sizeText(123e6), sizeText(2.5e12)]).toEqual([
      '0 B',
      '1.5 KB',
      '123 MB',
      '2.5 TB',
    ])
    expect([durationText(1.23), durationText(340), durationText(2100), durationText(185_000)]).toEqual([
      '1.2 ms',
      '340 ms',
      '2.1 s',
      '3 min 5 s',
    ])
  })
})
