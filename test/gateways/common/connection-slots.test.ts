// Goal: idle connections that have not signed in never lock out other clients: if there are too many of them, the one
// that has waited longest is closed. Connections that work stay open; they may be closed only after half a minute
// without activity. The limits in total and per client address hold.

import { expect, test } from 'vitest'
import { type ConnectionSlot, ConnectionSlots, type Limit } from '../../../gateways/common/connection-slots.js'

let nowMs = 0

interface Opened {
  readonly place: ConnectionSlot
  dismissed: string | null
  idleMs: number
}

function slots(max: number, { spare = 4, perAddressMax = 0 } = {}): ConnectionSlots {
  nowMs = 0
  return new ConnectionSlots({ max, perAddressMax }, { spare, nowMs: () => nowMs })
}

function enter(all: ConnectionSlots, address = '192.0.2.1'): Opened | Limit {
  const dismiss = (reason: string): void => {
    opened.dismissed = reason
  }
  const place = all.enter({ address, dismiss, idleMs: () => opened.idleMs })
  const opened: Opened = { place: place as ConnectionSlot, dismissed: null, idleMs: 0 }
  return typeof place === 'string' ? place : opened
}

function enterMany(all: ConnectionSlots, count: number): Opened[] {
  return Array.from({ length: count }, () => enter(all) as Opened)
}

function dismissedOf(opened: readonly Opened[]): number[] {
  return opened.flatMap(({ dismissed }, index) => (dismissed === null ? [] : [index]))
}

test('a connection that works takes a slot, and one more is refused', () => {
  const all = slots(3)
  const working = enterMany(all, 3)
  expect(working.map(({ place }) => place.work())).toEqual([null, null, null])
  const [late] = enterMany(all, 1) as [Opened]
  expect(late.place.refusal()).toBe('total')
  expect(late.place.work()).toBe('total')
  working[1]?.place.leave()
  expect(late.place.work()).toBe(null)
  expect(working[0]?.place.work()).toBe(null)
})

test('silent ones keep nobody from working, however many they are', () => {
  const all = slots(4)
  const silent = enterMany(all, 100)
  expect(all.size).toBe(8)
  expect(dismissedOf(silent)).toEqual(Array.from({ length: 92 }, (_, index) => index))
  expect(enterMany(all, 4).map(({ place }) => place.work())).toEqual([null, null, null, null])
  expect(all.size).toBe(8)
})

test('many that open at one time and work later all may, within the grace', () => {
  const all = slots(8)
  const opened = enterMany(all, 8)
  nowMs = 2900
  all.sweep()
  expect(opened.map(({ place }) => place.work())).toEqual(Array(8).fill(null))
  expect(dismissedOf(opened)).toEqual([])
})

test('behind the grace half of the places are left to those that wait', () => {
  const all = slots(8)
  const opened = enterMany(all, 8)
  opened[2]?.place.work()
  nowMs = 3000
  all.sweep()
  expect(dismissedOf(opened)).toEqual([0, 1, 3])
  expect(opened[0]?.dismissed).toContain('evicted in favour')
})

test('nobody waits beyond the limit behind the grace', () => {
  const all = slots(2)
  for (const { place } of enterMany(all, 2)) place.work()
  const late = enterMany(all, 2)
  nowMs = 3000
  all.sweep()
  expect(dismissedOf(late)).toEqual([0, 1])
})

test('those that have had their answer give way first', () => {
  const all = slots(2, { spare: 0 })
  const [first, second] = enterMany(all, 2) as [Opened, Opened]
  second.place.work()
  second.place.depart()
  enter(all)
  expect([first.dismissed, second.dismissed !== null]).toEqual([null, true])
})

test('without spare places the new one is turned away where all work', () => {
  const all = slots(2, { spare: 0 })
  for (const { place } of enterMany(all, 2)) place.work()
  expect(enter(all)).toBe('total')
})

test('one that has rested for half a minute gives way to work', () => {
  const all = slots(2)
  const [first, second] = enterMany(all, 2) as [Opened, Opened]
  for (const { place } of [first, second]) place.work()
  const [late] = enterMany(all, 1) as [Opened]
  first.idleMs = 29_000
  second.idleMs = 0
  expect(late.place.work()).toBe('total')
  first.idleMs = 31_000
  expect(late.place.refusal()).toBe(null)
  expect(first.dismissed).toBe(null)
  expect(late.place.work()).toBe(null)
  expect([first.dismissed !== null, second.dismissed]).toEqual([true, null])
})

test('an address has so many connections, if so many are set', () => {
  const all = slots(10, { perAddressMax: 2 })
  const [first, second, third] = enterMany(all, 3) as [Opened, Opened, Opened]
  expect([first.place.work(), second.place.work(), third.place.work()]).toEqual([null, null, 'address'])
  expect((enter(all, '::ffff:192.0.2.1') as Opened).place.work()).toBe('address')
  expect((enter(all, '192.0.2.2') as Opened).place.work()).toBe(null)
  first.place.leave()
  first.place.leave()
  third.place.leave()
  expect((enter(all) as Opened).place.work()).toBe('address')
  const unheard = slots(10, { perAddressMax: 1, spare: 0 })
  enter(unheard)
  expect(enter(unheard)).toBe('address')
})

test('a limit that changes is the limit of those to come', () => {
  const all = slots(1)
  const opened = enterMany(all, 2)
  expect(opened.map(({ place }) => place.work())).toEqual([null, 'total'])
  all.limit({ max: 2, perAddressMax: 0 })
  expect(opened.map(({ place }) => place.work())).toEqual([null, null])
})
