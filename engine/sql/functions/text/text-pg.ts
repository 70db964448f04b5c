// SQL functions of PostgreSQL on bytes and strings that other servers of the native dialect lack: encode(), decode(),
// translate(), overlay(), btrim() and the like. Clients of both dialects can call them.

import { nonNull } from '../../../base/assert.js'
import { SqlError } from '../../../base/errors.js'
import { valueBytesMax } from '../../../base/limits.js'
import { characterCount } from '../../../types/characters.js'
import { displayText } from '../../../types/convert.js'
import type { Value } from '../../../types/value.js'
import type { CallSite, ScalarFunction } from '../function-types.js'

// Bytes -------------------------------------------------------------------------------------------------------------

const formats = ['hex', 'base64', 'escape'] as const

function formatOf(written: Value | undefined): (typeof formats)[number] {
  const name = String(written).toLowerCase()
  const format = formats.find((known) => known === name)
  if (format === undefined) throw new SqlError(`unrecognized encoding: "${String(written)}"`, 0)
  return format
}

/** Strings are encoded as UTF-8. */
function bytesOf(value: Value | undefined): Buffer {
  return value instanceof Uint8Array ? Buffer.from(value) : Buffer.from(String(value), 'utf8')
}

/** Lines of 76 characters, as in MIME. */
function base64Text(bytes: Buffer): string {
  return bytes.toString('base64').replace(/(.{76})(?=.)/g, '$1\n')
}

/** Non-ASCII bytes and 0 as `\ooo`. */
function escapedText(bytes: Buffer): string {
  return Array.from(bytes, (byte) => {
    if (byte === 0 || byte > 127) return `\\${byte.toString(8).padStart(3, '0')}`
    return byte === 92 ? '\\\\' : String.fromCharCode(byte)
  }).join('')
}

function encoded([value, written]: readonly Value[]): string {
  const bytes = bytesOf(value)
  switch (formatOf(written)) {
    case 'hex':
      return bytes.toString('hex')
    case 'base64':
      return base64Text(bytes)
    case 'escape':
      return escapedText(bytes)
  }
}

function decoded([text, written]: readonly Value[]): Uint8Array {
  const bare = String(text).replace(/\s/g, '')
  switch (formatOf(written)) {
    case 'hex':
      if (!/^([0-9a-f]{2})*$/i.test(bare)) throw new SqlError('invalid hexadecimal data', 0)
      return Buffer.from(bare, 'hex')
    case 'base64':
      if (!/^[a-z0-9+/]*={0,2}$/i.test(bare) || bare.length % 4 !== 0) throw new SqlError('invalid base64 data', 0)
      return Buffer.from(bare, 'base64')
    case 'escape':
      return unescaped(String(text))
  }
}

function unescaped(text: string): Uint8Array {
  const parts = text.match(/\\[0-3][0-7]{2}|\\\\|[^\\]+/g) ?? []
  if (parts.join('') !== text) throw new SqlError('invalid input syntax for type bytea', 0)
  return Buffer.concat(
    parts.map((part) => {
      if (part === '\\\\') return Buffer.from('\\')
      return part.startsWith('\\') ? Buffer.of(Number.parseInt(part.slice(1), 8)) : Buffer.from(part, 'utf8')
    }),
  )
}

function checkUtf8(name: Value | undefined): void {
  if (!/^utf-?8$/i.test(String(name))) throw new SqlError(`the only encoding is UTF8 [encoding=${String(name)}]`, 0)
}

function textOfBytes(bytes: Value | undefined): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes as Uint8Array)
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown
    throw new SqlError('invalid byte sequence for encoding "UTF8"', 0)
  }
}

const bytes: readonly ScalarFunction[] = [
  ...(['BINARY', 'TEXT'] as const).map(
    (type): ScalarFunction => ({
      name: 'encode',
      takes: [type, 'TEXT'],
      gives: 'STRING',
      description: "Encodes bytes, or a string's bytes, as text: hex, base64 or escape.",
      example: type === 'TEXT' ? ["encode('abc', 'base64')", 'YWJj'] : null,
      eval: encoded,
    }),
  ),
  {
    name: 'decode',
    takes: ['TEXT', 'TEXT'],
    gives: 'BINARY',
    description: 'Decodes text to bytes: hex, base64 or escape.',
    example: null,
    eval: decoded,
  },
  {
    name: 'convert_to',
    takes: ['TEXT', 'TEXT'],
    gives: 'BINARY',
    description: 'Encodes a string as UTF-8 bytes.',
    example: null,
    eval: ([text, encoding]) => {
      checkUtf8(encoding)
      return bytesOf(text)
    },
  },
  {
    name: 'convert_from',
    takes: ['BINARY', 'TEXT'],
    gives: 'STRING',
    description: 'Decodes UTF-8 bytes to a string.',
    example: ["convert_from(convert_to('é', 'UTF8'), 'UTF8')", 'é'],
    eval: ([value, encoding]) => {
      checkUtf8(encoding)
      return textOfBytes(value)
    },
  },
  ...(['BINARY', 'TEXT'] as const).flatMap((type): ScalarFunction[] => [
    {
      name: 'octet_length',
      takes: [type],
      gives: 'INT',
      description: 'Number of bytes.',
      example: type === 'TEXT' ? ["octet_length('é')", '2'] : null,
      eval: ([value]) => bytesOf(value).length,
    },
    {
      name: 'bit_length',
      takes: [type],
      gives: 'INT',
      description: 'Number of bits.',
      example: type === 'TEXT' ? ["bit_length('é')", '16'] : null,
      eval: ([value]) => bytesOf(value).length * 8,
    },
  ]),
]

// Characters --------------------------------------------------------------------------------------------------------

function translated(text: string, from: readonly string[], to: readonly string[]): string {
  const places = new Map<string, string>()
  for (const [index, character] of from.entries()) if (!places.has(character)) places.set(character, to[index] ?? '')
  return Array.from(text, (character) => places.get(character) ?? character).join('')
}

/** Replaces `count` characters from `start` (counted from 1). */
function overlaid(text: string, other: string, start: number, count: number): string {
  if (start < 1) throw new SqlError('negative substring length not allowed', 0)
  const characters = [...text]
  const head = characters.slice(0, start - 1)
  return [...head, other, ...characters.slice(Math.max(0, start - 1 + count))].join('')
}

/** Removes the given characters at both ends. */
function trimmed(text: string, characters: string): string {
  const taken = new Set(characters)
  const all = [...text]
  let [from, to] = [0, all.length]
  while (from < to && taken.has(all[from] ?? '')) from++
  while (to > from && taken.has(all[to - 1] ?? '')) to--
  return all.slice(from, to).join('')
}

function joined([separator, ...values]: readonly Value[], { argTypes, position }: CallSite): Value {
  if (separator === null || separator === undefined) return null
  const strings = values.flatMap((value, index) =>
    value === null ? [] : [displayText(value, nonNull(argTypes[index + 1]))],
  )
  const text = strings.join(String(separator))
  if (text.length > valueBytesMax) throw new SqlError(`joined text is too long [max=${valueBytesMax}]`, position)
  return text
}

const characters: readonly ScalarFunction[] = [
  ...['char_length', 'character_length'].map(
    (name): ScalarFunction => ({
      name,
      takes: ['TEXT'],
      gives: 'INT',
      description: 'Number of characters; -1 for NULL, over the PostgreSQL protocol NULL.',
      example: [`${name}('a😀')`, '2'],
      seesNull: true,
      total: true,
      eval: ([text = null]) => (text === null ? -1 : characterCount(String(text))),
    }),
  ),
  {
    name: 'concat_ws',
    takes: ['TEXT', 'ANY'],
    more: 'ANY',
    gives: 'STRING',
    description: 'The values as text, joined by a separator; NULLs are ignored.',
    example: ["concat_ws(', ', 'a', null, 1)", 'a, 1'],
    seesNull: true,
    eval: joined,
  },
  {
    name: 'translate',
    takes: ['TEXT', 'TEXT', 'TEXT'],
    gives: 'STRING',
    description:
      'Replaces each character of the second string by the character at the same position in the third, or removes it if there is none.',
    example: ["translate('12345', '143', 'ax')", 'a2x5'],
    eval: ([text, from, to]) => translated(String(text), [...String(from)], [...String(to)]),
  },
  {
    name: 'overlay',
    takes: ['TEXT', 'TEXT', 'INT'],
    gives: 'STRING',
    description:
      'Replaces as many characters as the other string has, from a position on: `overlay(text placing other from position)`.',
    example: ["overlay('abcdef' placing 'ZZ' from 3)", 'abZZef'],
    eval: ([text, other, start]) => overlaid(String(text), String(other), Number(start), [...String(other)].length),
  },
  {
    name: 'overlay',
    takes: ['TEXT', 'TEXT', 'INT', 'INT'],
    gives: 'STRING',
    description: 'Replaces a given number of characters: `.. for count)`.',
    example: ["overlay('Txxxxas' placing 'hom' from 2 for 4)", 'Thomas'],
    eval: ([text, other, start, count]) => overlaid(String(text), String(other), Number(start), Number(count)),
  },
  {
    name: 'btrim',
    takes: ['TEXT'],
    gives: 'STRING',
    description: 'Removes blanks at both ends.',
    example: ["btrim('  a ')", 'a'],
    eval: ([text]) => trimmed(String(text), ' '),
  },
  {
    name: 'btrim',
    takes: ['TEXT', 'TEXT'],
    gives: 'STRING',
    description: 'Removes any of the given characters at both ends.',
    example: ["btrim('xyxtrimyyx', 'xyz')", 'trim'],
    eval: ([text, taken]) => trimmed(String(text), String(taken)),
  },
  ...(['INT', 'LONG'] as const).map(
    (type): ScalarFunction => ({
      name: 'to_hex',
      takes: [type],
      gives: 'STRING',
      description: "An integer as hexadecimal digits; a negative one in two's complement.",
      example: type === 'INT' ? ['to_hex(-1)', 'ffffffff'] : null,
      eval: ([value]: readonly [number | bigint]) =>
        BigInt.asUintN(type === 'INT' ? 32 : 64, BigInt(value)).toString(16),
    }),
  ),
]

export const pgStrings: readonly ScalarFunction[] = [...characters, ...bytes]
