// Goal: the name that is suggested for a misspelt one differs from it in few characters, or is the only name that
// begins with it.

import { expect, test } from 'vitest'
import { nearest, suggestion } from '../../../engine/base/nearest.js'

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

const columns = ['ts', 'sensor', 'room', 'temperature', 'humidity', 'battery', 'battery_type']

test.each([
  ['temprature', 'did you mean temperature?'],
  ['SENSOR_', 'did you mean sensor?'],
  ['temp', 'did you mean temperature?'],
  ['t', ''],
  ['bat', ''],
  ['colour', ''],
])('the suggestion for %s is: %s', (name, wanted) => {
  expect(suggestion(name, columns)).toBe(wanted)
})
