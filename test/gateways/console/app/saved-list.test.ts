// Goal: the console's list of saved queries is unique by name and user, and ignores other values in the preferences
// from which it is read.

import { expect, test } from 'vitest'
import { savedQueriesIn, withoutQuery, withQuery } from '../../../../gateways/console/app/saved-list.js'

const one = { name: 'b', sql: 'select 1', user: 'ann' }
const other = { name: 'b', sql: 'select 2', user: 'bob' }

test('a name is unique for each user, and the list is in order', () => {
  const list = withQuery(withQuery([one], other), { name: 'a', sql: 'select 3', user: 'ann' })
  expect(list.map(({ name, user }) => `${name} ${user}`)).toEqual(['a ann', 'b ann', 'b bob'])
  expect(withQuery(list, { ...one, sql: 'select 4' }).filter(({ name }) => name === 'b')).toEqual([
    other,
    { ...one, sql: 'select 4' },
  ])
  expect(withoutQuery([one, other], one)).toEqual([other])
})

test('other values in the preferences are no queries', () => {
  expect(savedQueriesIn({})).toEqual([])
  expect(savedQueriesIn({ 'console.queries': [one, null, 5, { name: '', sql: 'x' }, { name: 'x' }] })).toEqual([one])
  expect(savedQueriesIn({ 'console.queries': 'text' })).toEqual([])
})
