// Goal: rejected connections are logged at most once a minute for each client address, with the number of rejections
// since then. The addresses beyond the first thousand share one record.

import { expect, test } from 'vitest'
import { Refusals } from '../../../gateways/common/refusals.js'

let nowMs = 0

function refusals(): { readonly logged: string[]; readonly note: (address: string, reason?: string) => void } {
  nowMs = 0
  const logged: string[] = []
  const clock = { nowMicros: () => 0, monotonicMs: () => nowMs } as unknown as ConstructorParameters<typeof Refusals>[2]
  const log = (_level: string, _logger: string, message: string): void => void logged.push(message)
  const all = new Refusals('http', log, clock)
  return { logged, note: (remoteAddress, reason = 'why') => all.note({ remoteAddress }, reason) }
}

test('an address is logged once a minute, with the number of the others', () => {
  const { logged, note } = refusals()
  for (let index = 0; index < 100; index++) note('192.0.2.1')
  note('::ffff:192.0.2.1')
  note('192.0.2.2', 'another')
  expect(logged).toEqual(['refused: why [from=192.0.2.1]', 'refused: another [from=192.0.2.2]'])
  nowMs = 59_999
  note('192.0.2.1')
  expect(logged.length).toBe(2)
  nowMs = 60_000
  note('192.0.2.1')
  expect(logged[2]).toBe('refused: why [from=192.0.2.1, others since the last record=101]')
})

test('addresses without number share one record', () => {
  const { logged, note } = refusals()
  for (let index = 0; index < 3000; index++) note(`2001:db8::${index.toString(16)}`)
  expect(logged.length).toBe(1001)
  expect(logged.at(-1)).toContain('further addresses')
  nowMs = 60_000
  note('192.0.2.9')
  expect(logged.at(-1)).toContain('[from=192.0.2.9]')
})
