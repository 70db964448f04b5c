// Goal: flushes on a query thread never wait for a job that waits for memory. Method: the test allocates all memory of the
// query budget; compactions wait for it while flushes continue; then the test frees it.

import { expect, test } from 'vitest'
import { budgets } from '../../../engine/memory/budgets.js'
import { emptyEngine, type InlineEngine } from '../../support/inline-engine.js'

const base = 1_704_067_200_000_000_000n

/** Takes every page of the queries' budget; returns how to give them back. */
function takeAll({ allocator }: InlineEngine): () => void {
  const taken: number[] = []
  for (let bytes = 1 << 24; bytes >= 256; ) {
    const address = allocator.allocate(bytes, budgets.queries)
    if (address === 0) bytes >>>= 1
    else taken.push(address)
  }
  return () => taken.forEach((address) => void allocator.free(address))
}

test('a merge without memory waits, flushes go on', async () => {
  const engine = await emptyEngine()
  const giveBack = takeAll(engine)
  for (let round = 0n; round < 8n; round++) {
    await engine.lines(`t v=${round} ${base + round}\n`)
    await engine.run('checkpoint')
  }
  expect(engine.jobKinds.filter((kind) => kind === 'flush')).toHaveLength(8)
  expect(engine.jobKinds).toContain('merge')
  giveBack()
  expect((await engine.rows("select count() from table_parts('t')"))[0]?.[0]).toBe(8n)
  await engine.settle()
  expect((await engine.rows("select count() from table_parts('t')"))[0]?.[0]).toBeLessThan(8n)
  expect(await engine.rows('select count() from t')).toEqual([[8n]])
  expect(engine.logged).toEqual([])
})
