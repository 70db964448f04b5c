// Unmasks WebSocket frames in the chunks of a socket, in place, before the package ws reads them. ws unmasks byte by
// byte, which takes several times as long as all else that it does. After unmasking, this file sets the bytes of the
// mask to 0, and ws leaves the payload of such a frame as it is.
//
//   frame   FIN and opcode u8 | masked u1, length u7 | [length u16 or u64, by length 126 or 127] | mask 4 bytes | payload
//
// This file checks nothing: apart from the mask, ws gets the headers as the client sent them, and checks them.

const headerBytesMax = 14
const maskBytes = 4

/** Returns a function that unmasks the next chunk of a connection. */
export function unmasker(): (chunk: Buffer) => void {
  const header = Buffer.alloc(headerBytesMax)
  /** Bytes of the header that have come. */
  let known = 0
  let payloadLeft = 0
  /** Bytes of the payload that have come. */
  let position = 0

  /** Takes a byte of a header; true: it is the last one. */
  const takeHeader = (chunk: Buffer, at: number): boolean => {
    header[known++] = chunk[at]!
    const short = header[1]! & 0x7f
    const maskAt = known < 2 ? headerBytesMax : short === 127 ? 10 : short === 126 ? 4 : 2
    if (known > maskAt) chunk[at] = 0
    const isMasked = header[1]! >= 0x80
    if (known < 2 || known < (isMasked ? maskAt + maskBytes : maskAt)) return false
    payloadLeft = short === 127 ? Number(header.readBigUInt64BE(2)) : short === 126 ? header.readUInt16BE(2) : short
    header.copyWithin(0, maskAt, maskAt + maskBytes)
    if (!isMasked) header.fill(0, 0, maskBytes)
    return true
  }

  return (chunk) => {
    let at = 0
    while (at < chunk.length) {
      if (payloadLeft === 0) {
        if (takeHeader(chunk, at++)) {
          position = 0
          known = 0
        }
        continue
      }
      const end = Math.min(chunk.length, at + payloadLeft)
      applyMask(chunk, at, end, header, position)
      payloadLeft -= end - at
      position = (position + end - at) & 3
      at = end
    }
  }
}

/** The first byte is the one at `position` of its payload. By words: V8 has no faster loop over bytes. */
function applyMask(bytes: Buffer, from: number, to: number, mask: Buffer, position: number): void {
  const aligned = Math.min(to, from + (-(bytes.byteOffset + from) & 3))
  const behind = to - ((to - aligned) & 3)
  for (let at = from; at < aligned; at++) bytes[at]! ^= mask[(position + at - from) & 3]!
  if (behind > aligned) {
    let key = 0
    for (let byte = 0; byte < 4; byte++) key |= mask[(position + aligned - from + byte) & 3]! << (byte * 8)
    applyToWords(new Int32Array(bytes.buffer, bytes.byteOffset + aligned, (behind - aligned) >>> 2), key)
  }
  for (let at = behind; at < to; at++) bytes[at]! ^= mask[(position + at - from) & 3]!
}

function applyToWords(words: Int32Array, key: number): void {
  if (key === 0) return
  const { length } = words
  let index = 0
  for (; index + 4 <= length; index += 4) {
    words[index]! ^= key
    words[index + 1]! ^= key
    words[index + 2]! ^= key
    words[index + 3]! ^= key
  }
  for (; index < length; index++) words[index]! ^= key
}
