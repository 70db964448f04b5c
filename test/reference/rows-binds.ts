// Reference implementation of findBinds(), which finds consecutive Bind messages with the same parameter formats that
// can be processed together: it compares the messages one by one.

import type { SharedMemory } from '../../engine/memory/shared-memory.js'

interface Find {
  readonly view: DataView
  readonly limit: number
  readonly prefix: Uint8Array
  readonly suffix: Uint8Array
  readonly formats: number
  readonly values: number
}

interface Message {
  readonly end: number
  readonly described: boolean
  readonly synced: boolean
}

export function findBindsReference(memory: SharedMemory, state: number): number {
  const { u8, u32, i32 } = memory
  const word = state >>> 2
  const field = (index: number): number => u32[word + index]!
  const find: Find = {
    view: new DataView(memory.memory.buffer),
    limit: field(1),
    prefix: u8.subarray(field(2), field(2) + field(3)),
    suffix: u8.subarray(field(4), field(4) + field(5)),
    formats: field(6),
    values: field(7),
  }
  let at = field(0)
  let binds = 0
  let last: Message | null = null
  while (binds < field(8)) {
    const places = placesOf(find, at)
    const message = places === null ? null : messageBehind(find, places.end, field(9) === 1)
    if (places === null || message === null) break
    if (last !== null && (message.described !== last.described || (last.synced && !message.synced))) break
    i32.set(places.starts, (field(10) >>> 2) + binds * find.values)
    i32.set(places.ends, (field(11) >>> 2) + binds * find.values)
    const synced: boolean = last === null ? message.synced : last.synced
    at = synced ? message.end + 5 : message.end
    u32[(field(12) >>> 2) + binds] = at
    binds++
    last = { ...message, synced }
    // The Sync that ends a batch is left to the session.
    if (message.synced !== synced) break
  }
  u32[word] = at
  u32[word + 13] = last?.described === true ? 1 : 0
  u32[word + 14] = last?.synced === true ? 1 : 0
  return binds
}

/** Of a Bind that is whole and like the last ones. */
function placesOf({ view, limit, prefix, suffix, formats, values }: Find, at: number) {
  const first = at + 5
  if (first + prefix.length > limit || view.getUint8(at) !== 66) return null
  const end = at + 1 + view.getInt32(at + 1)
  if (end < first + prefix.length || end >= limit) return null
  const starts: number[] = []
  const ends: number[] = []
  const valuesEnd = end - suffix.length
  let next = first + prefix.length
  for (let index = 0; index < values; index++) {
    if (next + 4 > valuesEnd) return null
    const length = view.getInt32(next)
    next += 4
    starts.push(next)
    ends.push(length < 0 ? -1 : next + length)
    if (length > valuesEnd - next) return null
    next += Math.max(0, length)
  }
  if (next !== valuesEnd || suffix.some((byte, index) => view.getUint8(valuesEnd + index) !== byte)) return null
  for (let index = 0; index < prefix.length; index++) {
    if (view.getUint8(first + index) === prefix[index]) continue
    // The format of a NULL means nothing.
    const place = (index - formats) >> 1
    if (formats === 0 || index < formats || place >= values || (ends[place] as number) >= 0) return null
    if (view.getUint16(first + formats + place * 2) > 1) return null
  }
  return { starts, ends, end }
}

function messageBehind({ view, limit }: Find, at: number, syncs: boolean): Message | null {
  const described =
    at + 7 <= limit && view.getUint8(at) === 68 && view.getInt32(at + 1) === 6 && view.getUint16(at + 5) === 0x5000
  const execute = described ? at + 7 : at
  const end = execute + 10
  if (end > limit || view.getUint8(execute) !== 69 || view.getInt32(execute + 1) !== 9) return null
  if (view.getUint8(execute + 5) !== 0) return null
  const synced = syncs && end + 5 <= limit && view.getUint8(end) === 83 && view.getInt32(end + 1) === 4
  return { end, described, synced }
}
