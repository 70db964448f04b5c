// Goal: the parser of QWP query messages (columnar protocol over WebSocket) turns any bytes into a request or a
// NetworkError, and takes no memory or time beyond the size of a message, whatever lengths the message states.
//
// Method: messages with parameters of every type are cut, extended, changed at random places and replaced by random
// bytes, with printed seeds.

import { describe, expect, test } from 'vitest'
import { NetworkError } from '../../../engine/base/errors.js'
import { RequestError, readWireRequest } from '../../../engine/qwp/query-request.js'
import { cancelRequest, creditRequest, queryRequest } from '../../support/qwp-messages.js'
import { createRandom } from '../../support/random.js'

const whole = queryRequest(-7n, 'select $1', {
  credit: 65_536,
  timeoutMs: 1000,
  binds: [
    { type: 'BOOLEAN', value: true },
    { type: 'LONG', value: null },
    { type: 'VARCHAR', value: 'größe' },
    { type: 'VARCHAR', value: null },
    { type: 'DECIMAL256', value: -3n, parameter: 4 },
    { type: 'GEOHASH', value: 5n, parameter: 10 },
    { type: 'DOUBLE_ARRAY', value: { shape: [2, 1], values: [1, 2] } },
    { type: 'SYMBOL', value: null },
    { type: 'BINARY', value: Uint8Array.of(1) },
  ],
})

function outcome(message: Uint8Array): 'request' | 'error' {
  try {
    readWireRequest(message)
    return 'request'
  } catch (error) {
    expect(error).toBeInstanceOf(NetworkError)
    return 'error'
  }
}

const hexByte = (byte: number): string => byte.toString(16).padStart(2, '0')

describe('messages to the query endpoint', () => {
  test('are read', () => {
    expect(readWireRequest(cancelRequest(3n))).toEqual({ kind: 'cancel', requestId: 3n })
    expect(readWireRequest(creditRequest(4n, 65_536))).toEqual({ kind: 'credit', requestId: 4n, bytes: 65_536 })
    expect(readWireRequest(creditRequest(4n, 2n ** 64n - 1n))).toMatchObject({ bytes: 2 ** 64 })
    const query = readWireRequest(whole)
    expect(query).toMatchObject({ kind: 'query', requestId: -7n, sql: 'select $1', credit: 65_536, timeoutMs: 1000 })
    expect(query.kind === 'query' ? query.parameters.map(({ value }) => value) : []).toEqual([
      ...[true, null, 'größe', null, -3n, 5n],
      ...[{ shape: [2, 1], data: Float64Array.of(1, 2) }, null, Uint8Array.of(1)],
    ])
  })

  test('that end early or go on name their request', () => {
    for (let end = 0; end < whole.length; end++) {
      if (outcome(whole.subarray(0, end)) === 'request') expect(end).toBe(whole.length - 3)
      else if (end >= 9) expect(() => readWireRequest(whole.subarray(0, end))).toThrow(RequestError)
    }
    expect(outcome(Buffer.concat([whole, Buffer.of(0)]))).toBe('error')
    expect(outcome(Buffer.concat([cancelRequest(1n), Buffer.of(0)]))).toBe('error')
  })

  test.each([1, 2, 3])('that are changed at random are read or refused [seed=%i]', (seed) => {
    const random = createRandom(seed)
    for (let round = 0; round < 3000; round++) {
      const message = Uint8Array.from(whole)
      for (let change = 0; change <= random.below(4); change++) {
        message[random.below(message.length)] = random.below(256)
      }
      outcome(message)
      outcome(random.fill(new Uint8Array(random.below(64))))
    }
  })

  test('have decimals of up to 76 digits behind the point', () => {
    const request = (scale: number): Uint8Array =>
      Buffer.from(`10${'00'.repeat(8)}0000011300${hexByte(scale)}0500000000000000`, 'hex')
    const query = readWireRequest(request(30))
    expect(query.kind === 'query' ? query.parameters : []).toMatchObject([{ value: 5n, type: { a: 30, b: 30 } }])
    expect(outcome(request(76))).toBe('request')
    expect(() => readWireRequest(request(77))).toThrow('the scale of a decimal is 0 to 76 [scale=77]')
  })

  test('do not announce more than they have', () => {
    const count = Buffer.from('10000000000000000001410000', 'hex')
    expect(outcome(count)).toBe('request')
    expect(outcome(Buffer.from('1000000000000000000141008108', 'hex'))).toBe('error')
    expect(outcome(Buffer.from('1000000000000000000141000111000101000000ffffff7f', 'hex'))).toBe('error')
  })
})
