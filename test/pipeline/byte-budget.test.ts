// Goal: the limit for the bytes of all request bodies in memory holds, waiting requests get memory in the order of
// their arrival, and a request that gives up waiting does not block those behind it.

import { expect, test } from 'vitest'
import { ByteBudget } from '../../pipeline/byte-budget.js'

const never = new AbortController().signal

test('waits in order and gives back', async () => {
  const budget = new ByteBudget(100)
  await budget.reserve(80, never)
  const order: string[] = []
  const large = budget.reserve(50, never).then(() => order.push('large'))
  const small = budget.reserve(10, never).then(() => order.push('small'))
  await Promise.resolve()
  expect(order).toEqual([])
  budget.release(80)
  await Promise.all([large, small])
  expect(order).toEqual(['large', 'small'])
  expect(budget.used).toBe(60)
})

test('a size beyond the budget takes all of it', async () => {
  const budget = new ByteBudget(100)
  expect(await budget.reserve(500, never)).toBe(100)
})

test('who goes away leaves the queue', async () => {
  const budget = new ByteBudget(100)
  await budget.reserve(100, never)
  const leaving = new AbortController()
  const waiting = budget.reserve(60, leaving.signal)
  leaving.abort(new Error('gone'))
  await expect(waiting).rejects.toThrow('gone')
  budget.release(100)
  expect(budget.used).toBe(0)
})

test('growth beyond the budget is refused, not awaited', async () => {
  const budget = new ByteBudget(100)
  budget.grow(90)
  expect(() => budget.grow(20)).toThrow('too many bytes')
})
