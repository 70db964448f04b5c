// Goal: a thread at rest collects its young objects where Node lends its collector, and else leaves them to V8.

import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, expect, test, vi } from 'vitest'
import { collectYoung } from '../../../engine/base/collect-young.js'

afterEach(() => {
  vi.unstubAllGlobals()
})

const youngBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.space_used_size ?? 0

/** Until so much garbage lies there: V8 may collect in between. */
function litter(bytes: number): void {
  for (let n = 0; youngBytes() < bytes && n < 10_000; n++) Array.from({ length: 100 }, (_, index) => ({ index }))
}

test('garbage is collected, and little of it is not worth it', () => {
  setFlagsFromString('--expose-gc')
  const gc = vi.fn(runInNewContext('gc') as () => void)
  vi.stubGlobal('gc', gc)
  collectYoung()
  gc.mockClear()
  litter(700 * 1024)
  const before = youngBytes()
  collectYoung()
  expect(gc).toHaveBeenCalledTimes(1)
  expect(youngBytes()).toBeLessThan(before)
  gc()
  gc.mockClear()
  collectYoung()
  expect(gc).not.toHaveBeenCalled()
})

test('without the collector nothing happens', () => {
  vi.stubGlobal('gc', undefined)
  litter(700 * 1024)
  expect(collectYoung).not.toThrow()
})
