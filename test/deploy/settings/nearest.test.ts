// Goal: the function that suggests a setting for a misspelt name finds names with few differences, and no others.

import { expect, test } from 'vitest'
import { nearest } from '../../../deploy/settings/nearest.js'

const known = [
  'PENSTOCK_HTTP_USER',
  'PENSTOCK_HTTP_PASSWORD',
  'PENSTOCK_QUERY_THREADS',
  'PENSTOCK_HTTP_NET_BIND_TO',
  'x',
]

test.each([
  ['PENSTOCK_HTTP_USR', 'PENSTOCK_HTTP_USER'],
  ['PENSTOCK_HTTP_USERR', 'PENSTOCK_HTTP_USER'],
  ['PENSTOCK_HTPT_USER', 'PENSTOCK_HTTP_USER'],
  ['penstock_http_user', 'PENSTOCK_HTTP_USER'],
  ['PENSTOCK_HTTP_PASSWROD', 'PENSTOCK_HTTP_PASSWORD'],
  ['PENSTOCK_HTTP_BIND_TO', 'PENSTOCK_HTTP_NET_BIND_TO'],
  ['PENSTOCK_SOMETHING_ELSE', null],
  ['y', 'x'],
  ['xyz', null],
  ['', 'x'],
])('%s means %s', (name, wanted) => {
  expect(nearest(name, known)).toBe(wanted)
})
