// Goal: the error of a rejected line of line protocol names the actual fault, and bad lines beyond the number that a
// response can list are counted.

import { describe, expect, test } from 'vitest'
import { lineHarness } from './line-harness.js'

describe.each(['kernel', 'general'] as const)('%s path', (path) => {
  test('values that are no UTF-8 are refused, and said to be that', () => {
    const line = (text: string) => Buffer.from(text, 'latin1')
    const harness = lineHarness(path)
    harness.decode('u c="x",i=1i 5\n')
    const { rejects } = harness.decode(line('t s="\xff" 5\nt,s=\xc3 v=1i 5\nu c="\xe2\x82" 5\nu i="x" 5\n'), {
      ...{ atomic: false, skipBadLines: true },
    })
    expect(rejects.map(({ message }) => message)).toEqual([
      'table: t, column: s; the value is not valid UTF-8',
      'table: t, column: s; the value is not valid UTF-8',
      'table: u, column: c; the value is not valid UTF-8',
      'table: u, column: i; cast error from protocol type: STRING to column type: LONG',
    ])
  })

  test('more bad lines than are listed are counted', () => {
    const { rejects, rejected } = lineHarness(path).decode('bad\n'.repeat(1500), { atomic: false, skipBadLines: true })
    expect([rejects.length, rejected]).toEqual([1000, 1500])
  })
})
