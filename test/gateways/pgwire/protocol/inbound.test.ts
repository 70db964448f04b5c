// Goal: the stage that splits a PostgreSQL client's bytes into messages returns the same messages however the network
// splits the bytes, also for a message larger than the limit of buffered input.

import { expect, test } from 'vitest'
import { Inbound } from '../../../../gateways/pgwire/protocol/inbound.js'
import { message } from '../raw-client.js'

test('messages cut anywhere', () => {
  const bytes = Buffer.concat([message('B', 'one'), message('S'), message('B', 'another')])
  for (let cut = 0; cut <= bytes.length; cut++) {
    const inbound = new Inbound(1000)
    inbound.starting = false
    const seen: string[] = []
    for (const chunk of [bytes.subarray(0, cut), bytes.subarray(cut)]) {
      if (chunk.length > 0) inbound.stage.write(Buffer.from(chunk))
      for (;;) {
        const { waiting } = inbound
        if (waiting !== null) expect(waiting.bytes[waiting.at]).toBe(inbound.nextType)
        const next = inbound.next()
        if (next === null) break
        seen.push(String.fromCharCode(next.type) + next.bytes.toString('latin1', next.start, next.end))
      }
    }
    expect(seen).toEqual(['Bone', 'S', 'Banother'])
  }
})

// Chunks that wait in the stage are called back by next() itself, when nobody waits for them.
test('a message larger than what is held, whose last chunk waits in the stage, comes at once', () => {
  const bytes = Buffer.concat([message('d', Buffer.alloc(300 * 1024)), message('c')])
  const inbound = new Inbound(1024 * 1024)
  inbound.starting = false
  for (let at = 0; at < bytes.length; at += 64 * 1024) inbound.stage.write(bytes.subarray(at, at + 64 * 1024))
  const seen: string[] = []
  for (let next = inbound.next(); next !== null; next = inbound.next()) seen.push(String.fromCharCode(next.type))
  expect(seen).toEqual(['d', 'c'])
})
