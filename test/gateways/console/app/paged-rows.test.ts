// Goal: the console loads a result of any size in pages, has the server sort it until all rows are loaded, and discards
// pages that arrive after the user has chosen another order.

import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { repositoryRoot } from '../../../support/docs/source-tree.js'

interface Rows {
  readonly rowCount: number
  readonly isComplete: boolean
  readonly isSorting: boolean
  readonly sorting: object | null
  onChange: () => void
  row(index: number): readonly unknown[] | undefined
  sort(sorting: { column: number; descending: boolean } | null): Promise<void>
  count(): Promise<void>
  nearEnd(index: number): void
}

// A program for browsers, compiled: it has other types than the tests.
const module = join(repositoryRoot, 'dist/gateways/console/app/paged-rows.js')
const { PagedRows } = (await import(module)) as { PagedRows: new (sql: string, first: object) => Rows }

interface Asked {
  readonly query: string
  readonly limit?: string
  readonly count?: boolean
}

const columns = [{ name: 'x', type: 'LONG' }]
const original = globalThis.fetch
interface Request {
  readonly body: Asked
  readonly answer: (rows: readonly unknown[][], more?: boolean) => void
  readonly fail: (error: string) => void
  readonly signal: AbortSignal | null
}
let asked: Request[] = []

beforeEach(() => {
  asked = []
  globalThis.fetch = async (path, options) => {
    if (path === '../settings') return new Response('{"config":{}}')
    const body = JSON.parse(String(options?.body)) as Asked
    return new Promise<Response>((resolve, reject) => {
      options?.signal?.addEventListener('abort', () => reject(new Error('aborted')))
      const answer = (dataset: readonly unknown[][], more = false): void =>
        resolve(
          new Response(JSON.stringify({ columns, dataset, count: dataset.length, ...(more ? { capped: true } : {}) })),
        )
      const fail = (error: string): void => resolve(new Response(JSON.stringify({ error }), { status: 400 }))
      asked.push({ body, answer, fail, signal: options?.signal ?? null })
    })
  }
})
afterEach(() => {
  globalThis.fetch = original
})

const first = { kind: 'rows', columns, rows: [['1'], ['2']], more: true, serverMs: 0 }
const requests = (): Promise<void> => expect.poll(() => asked.length).toBeGreaterThan(0)

test('the next page is requested near the end, behind the rows that are here', async () => {
  const rows = new PagedRows('select x from t', first)
  rows.nearEnd(2)
  await requests()
  expect(asked[0]?.body).toMatchObject({ query: 'select x from t', limit: '2,3' })
  asked[0]?.answer([['3']])
  await expect.poll(() => rows.rowCount).toBe(3)
  expect([rows.isComplete, rows.row(2)]).toEqual([true, ['3']])
})

test('an order that was given up is not shown, however late it arrives', async () => {
  const rows = new PagedRows('select x from t', first)
  const ascending = rows.sort({ column: 0, descending: false })
  const descending = rows.sort({ column: 0, descending: true })
  await expect.poll(() => asked.length).toBe(2)
  expect(asked.map(({ body }) => body.query)).toEqual([
    'SELECT * FROM (select x from t\n) ORDER BY x',
    'SELECT * FROM (select x from t\n) ORDER BY x DESC',
  ])
  asked[1]?.answer([['9'], ['8']], true)
  await descending
  asked[0]?.answer([['1'], ['2']], true)
  await ascending
  expect(rows.row(0)).toEqual(['9'])
})

test('rows that are all here are sorted without the server', async () => {
  const rows = new PagedRows('select x from t', { ...first, rows: [['10'], [null], ['9']], more: false })
  await rows.sort({ column: 0, descending: true })
  expect([rows.row(0), rows.row(1), rows.row(2)]).toEqual([['10'], ['9'], [null]])
  await rows.sort(null)
  expect(rows.row(0)).toEqual(['10'])
  expect(asked).toEqual([])
})

test('an order that was given up is no longer computed, and its end is not an error', async () => {
  const rows = new PagedRows('select x from t', first)
  const ascending = rows.sort({ column: 0, descending: false })
  await requests()
  expect([asked[0]?.signal?.aborted, rows.isSorting]).toEqual([false, true])
  const descending = rows.sort({ column: 0, descending: true })
  await ascending
  expect([asked[0]?.signal?.aborted, rows.isSorting]).toEqual([true, true])
  await expect.poll(() => asked.length).toBe(2)
  asked[1]?.answer([['9'], ['8']], true)
  await descending
  expect([rows.isSorting, rows.row(0)]).toEqual([false, ['9']])
})

test('the chosen order shows before the server has sorted', () => {
  const rows = new PagedRows('select x from t', first)
  let shown: object | null = null
  rows.onChange = () => {
    shown = rows.sorting
  }
  void rows.sort({ column: 0, descending: true })
  expect([shown, rows.row(0)]).toEqual([{ column: 0, descending: true }, ['1']])
})

test('after a sort that fails, the rows have the order that the grid shows', async () => {
  const rows = new PagedRows('select x from t', first)
  const sorting = rows.sort({ column: 0, descending: true })
  await requests()
  asked[0]?.fail('out of memory')
  await expect(sorting).rejects.toThrow('out of memory')
  expect([rows.sorting, rows.isSorting, rows.row(0)]).toEqual([null, false, ['1']])
})

test('a page that was on its way when the order changed is requested again', async () => {
  const rows = new PagedRows('select x from t', first)
  rows.nearEnd(2)
  await requests()
  const sorting = rows.sort({ column: 0, descending: true })
  await expect.poll(() => asked.length).toBe(2)
  asked[1]?.answer([['9'], ['8']], true)
  await sorting
  expect(rows.row(2)).toBeUndefined()
  await expect.poll(() => asked.length).toBe(3)
  expect(asked[2]?.body).toMatchObject({ query: 'SELECT * FROM (select x from t\n) ORDER BY x DESC', limit: '2,3' })
  asked[0]?.answer([['3']])
  asked[2]?.answer([['7']])
  await expect.poll(() => rows.row(2)).toEqual(['7'])
})
