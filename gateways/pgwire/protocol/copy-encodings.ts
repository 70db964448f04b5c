// Converts COPY data, and the strings of clients, between a character encoding and the UTF-8 of the server. COPY uses
// the encoding of its option ENCODING, otherwise the session's client_encoding. Single-byte encodings can be read and
// written; multi-byte encodings, which the platform decodes, can only be read.

import { isAscii } from 'node:buffer'
import { PgError } from './sqlstate.js'

export interface CopyEncoding {
  readonly name: string
  /** Creates a decoder to UTF-8 for chunks that may be cut anywhere. */
  readonly reader: () => (chunk: Buffer | null) => Buffer
  /**
   * Encodes UTF-8; null: read-only encoding. Throws PgError for an unmappable character unless `instead` replaces
   * it.
   */
  readonly write: ((utf8: Uint8Array, instead?: string) => Buffer) | null
}

/** PostgreSQL's encoding names, without hyphens and underscores, and the platform's label for each. */
const labels: Readonly<Record<string, string>> = {
  ...{ latin2: 'iso-8859-2', latin3: 'iso-8859-3', latin4: 'iso-8859-4', latin6: 'iso-8859-10' },
  ...{ latin7: 'iso-8859-13', latin8: 'iso-8859-14', latin9: 'iso-8859-15', latin10: 'iso-8859-16' },
  ...{ iso88595: 'iso-8859-5', iso88596: 'iso-8859-6', iso88597: 'iso-8859-7', iso88598: 'iso-8859-8' },
  ...{ win866: 'ibm866', win874: 'windows-874', win1250: 'windows-1250', win1251: 'windows-1251' },
  ...{ win1253: 'windows-1253', win1254: 'windows-1254', win1255: 'windows-1255' },
  ...{ win1256: 'windows-1256', win1257: 'windows-1257', win1258: 'windows-1258', koi8r: 'koi8-r', koi8u: 'koi8-u' },
}

const wideLabels: Readonly<Record<string, string>> = {
  ...{ big5: 'big5', euccn: 'gb2312', eucjp: 'euc-jp', euckr: 'euc-kr', gb18030: 'gb18030', gbk: 'gbk' },
  ...{ sjis: 'shift_jis', shiftjis: 'shift_jis', uhc: 'euc-kr', win949: 'euc-kr' },
}

/**
 * Characters of windows-1252 from 0x80 on; it otherwise equals Latin-1. The platform's decoders differ between
 * releases.
 */
const westernFrom80 = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ'

function western(byte: number): string {
  return westernFrom80[byte - 0x80] ?? String.fromCharCode(byte)
}

/** Null: UTF-8. */
export function copyEncoding(written: string, position: number): CopyEncoding | null {
  const known = encodingNamed(written)
  if (known !== undefined) return known
  throw new PgError('22023', 'argument to option "encoding" must be a valid encoding name', position)
}

/** Null: UTF-8; undefined: unknown. */
export function encodingNamed(written: string): CopyEncoding | null | undefined {
  const name = written.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
  if (/^(utf8|unicode|sqlascii)$/.test(name)) return null
  if (/^(latin1|iso88591)$/.test(name)) return byteEncoding('LATIN1', (byte) => String.fromCharCode(byte))
  const short = name.replace(/^windows/, 'win')
  const shown = short.replace(/^iso8859(\d)$/, 'iso_8859_$1').toUpperCase()
  if (short === 'win1252') return byteEncoding(shown, western)
  const label = labels[short]
  if (label !== undefined) {
    const decoder = new TextDecoder(label)
    return byteEncoding(shown, (byte) => decoder.decode(Uint8Array.of(byte)))
  }
  const wide = wideLabels[name]
  return wide === undefined ? undefined : { name: written, reader: () => wideReader(wide, written), write: null }
}

const noBytes = Buffer.alloc(0)

function byteEncoding(name: string, characterOf: (byte: number) => string): CopyEncoding {
  const characters = Array.from({ length: 256 }, (_, byte) => characterOf(byte))
  const bytes = new Map(characters.map((character, byte) => [character, byte]))
  const read = (chunk: Buffer): Buffer => {
    const unknown = chunk.find((byte) => characters[byte] === '\ufffd')
    if (unknown !== undefined) throw noEquivalent([unknown], name, 'UTF8')
    return Buffer.from(Array.from(chunk, (byte) => characters[byte]).join(''))
  }
  return {
    name,
    reader: () => (chunk) => (chunk === null || isAscii(chunk) ? (chunk ?? noBytes) : read(chunk)),
    write: (utf8, instead) => {
      const text = [...Buffer.from(utf8.buffer, utf8.byteOffset, utf8.length).toString()]
      return Buffer.from(
        text.map((character) => {
          const byte = bytes.get(character) ?? instead?.charCodeAt(0)
          if (byte === undefined) throw noEquivalent(Buffer.from(character), 'UTF8', name)
          return byte
        }),
      )
    },
  }
}

function noEquivalent(character: Iterable<number>, from: string, to: string): PgError {
  const bytes = [...character].map((byte) => `0x${byte.toString(16).padStart(2, '0')}`).join(' ')
  const what = `character with byte sequence ${bytes} in encoding "${from}"`
  return new PgError('22P05', `${what} has no equivalent in encoding "${to}"`)
}

function wideReader(label: string, name: string): (chunk: Buffer | null) => Buffer {
  const decoder = new TextDecoder(label, { fatal: true })
  return (chunk) => {
    try {
      return Buffer.from(chunk === null ? decoder.decode() : decoder.decode(chunk, { stream: true }))
    } catch {
      throw new PgError('22021', `invalid byte sequence for encoding "${name}"`)
    }
  }
}
