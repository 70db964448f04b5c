// Goal: messages are read whatever pieces they come in, also by who looks at them before they are whole.

import { expect, test } from 'vitest'
import { Inbound } from '../../../gateways/pgwire/inbound.js'
import { message } from './raw-client.js'

test('messages cut anywhere', () => {
  const bytes = Buffer.concat([message('B', 'one'), message('S'), message('B', 'another')])
  for (let cut = 0; cut <= bytes.length; cut++) {
    const inbound = new Inbound(1000)
    inbound.starting = false
    const seen: string[] = []
    for (const piece of [bytes.subarray(0, cut), bytes.subarray(cut)]) {
      if (piece.length > 0) inbound.stage.write(Buffer.from(piece))
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
