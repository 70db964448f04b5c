// Parses and formats types other than numbers and timestamps: UUID, IPv4, LONG256, GEOHASH, arrays. Parsers return
// null for invalid text and never throw.

import { arrayDimensionsMax } from '../base/limits.js'
import { formatDouble, parseDouble } from './number.js'
import type { ArrayValue } from './value.js'

const uuidPattern = /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/

export function parseUuid(text: string): bigint | null {
  return uuidPattern.test(text) ? BigInt(`0x${text.replaceAll('-', '')}`) : null
}

/** Accepts PostgreSQL's forms: also without hyphens, and in braces. */
export function readUuid(text: string): bigint | null {
  const bare = text.startsWith('{') && text.endsWith('}') ? text.slice(1, -1) : text
  return /^[0-9a-fA-F]{32}$/.test(bare) ? BigInt(`0x${bare}`) : parseUuid(bare)
}

export function formatUuid(value: bigint): string {
  const hex = value.toString(16).padStart(32, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** `1.2.3.4` as an unsigned number. 0.0.0.0 is NULL in storage. */
export function parseIpv4(text: string): number | null {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)
  if (match === null) return null
  let value = 0
  for (const part of match.slice(1)) {
    if (Number(part) > 255) return null
    value = value * 256 + Number(part)
  }
  return value
}

export function formatIpv4(value: number): string {
  return `${Math.floor(value / 0x1000000)}.${(value >>> 16) & 255}.${(value >>> 8) & 255}.${value & 255}`
}

/** `1.2.3.0/24` or a bare address: network and mask, both unsigned. */
export function parseSubnet(text: string): { readonly network: number; readonly mask: number } | null {
  const [address = '', bits] = text.split('/')
  // `1.2/16`: bytes outside of the mask may be omitted.
  const written = address.split('.').length
  const isShort = bits !== undefined && written < 4 && Number(bits) <= 8 * written
  const value = parseIpv4(isShort ? address + '.0'.repeat(4 - written) : address)
  if (value === null) return null
  if (bits !== undefined && !/^\d{1,2}$/.test(bits)) return null
  const length = bits === undefined ? 32 : Number(bits)
  if (length > 32) return null
  const mask = length === 0 ? 0 : (0xffffffff << (32 - length)) >>> 0
  return { network: (value & mask) >>> 0, mask }
}

/** Parses up to 64 hexadecimal digits, an even number, with or without 0x. */
export function parseLong256(text: string): bigint | null {
  const digits = /^0[xX]/.test(text) ? text.slice(2) : text
  if (digits.length === 0 || digits.length > 64 || digits.length % 2 !== 0 || !/^[0-9a-fA-F]+$/.test(digits))
    return null
  return BigInt(`0x${digits}`)
}

export function formatLong256(value: bigint): string {
  const hex = value.toString(16)
  return `0x${hex.length % 2 === 0 ? hex : `0${hex}`}`
}

const geohashAlphabet = '0123456789bcdefghjkmnpqrstuvwxyz'

/** The first `bits` bits of geohash characters; null for an invalid character or too few. */
export function parseGeohash(text: string, bits: number): bigint | null {
  const digits = Math.ceil(bits / 5)
  if (text.length < digits || text.length === 0) return null
  let value = 0n
  for (const character of text.slice(0, digits).toLowerCase()) {
    const code = geohashAlphabet.indexOf(character)
    if (code < 0) return null
    value = (value << 5n) | BigInt(code)
  }
  return value >> BigInt(digits * 5 - bits)
}

export function parseGeohashBits(text: string): bigint | null {
  return /^[01]{1,60}$/.test(text) ? BigInt(`0b${text}`) : null
}

/** Prints characters if the size is a multiple of five bits, else bits. */
export function formatGeohash(value: bigint, bits: number): string {
  if (bits % 5 !== 0) return value.toString(2).padStart(bits, '0')
  let text = ''
  for (let shift = bits - 5; shift >= 0; shift -= 5) text += geohashAlphabet[Number((value >> BigInt(shift)) & 31n)]
  return text
}

/** Interleaves longitude and latitude, longitude first. */
export function geohashFromCoordinates(longitude: number, latitude: number, bits: number): bigint {
  let value = 0n
  let [west, east, south, north] = [-180, 180, -90, 90]
  for (let bit = 0; bit < bits; bit++) {
    const onLongitude = bit % 2 === 0
    const middle = onLongitude ? (west + east) / 2 : (south + north) / 2
    const upper = (onLongitude ? longitude : latitude) >= middle
    value = (value << 1n) | (upper ? 1n : 0n)
    if (onLongitude) [west, east] = upper ? [middle, east] : [west, middle]
    else [south, north] = upper ? [middle, north] : [south, middle]
  }
  return value
}

/** Parses `{1,2}`, `{{1,2},{3,4}}`, also with square brackets; null when it is ragged, too deep or not an array. */
export function parseArray(text: string): ArrayValue | null {
  const json = text.trim().replaceAll('{', '[').replaceAll('}', ']')
  if (!json.startsWith('[') || !/^[[\]\s,\d.eE+\-a-zA-Z]*$/.test(json)) return null
  const quoted = json.replace(/[^[\],\s]+/g, (word) => `"${word}"`)
  let parsed: unknown
  try {
    parsed = JSON.parse(quoted)
  } catch {
    return null
  }
  return arrayFromNested(parsed)
}

function arrayFromNested(nested: unknown): ArrayValue | null {
  const shape: number[] = []
  for (let level = nested; Array.isArray(level); level = level[0]) shape.push(level.length)
  if (shape.length === 0 || shape.length > arrayDimensionsMax) return null
  const data: number[] = []
  return collect(nested, shape, 0, data) ? { shape, data: Float64Array.from(data) } : null
}

function collect(nested: unknown, shape: readonly number[], depth: number, data: number[]): boolean {
  if (depth === shape.length) {
    if (typeof nested !== 'string') return false
    const value = nested.toLowerCase() === 'null' ? Number.NaN : parseDouble(nested)
    if (value === undefined) return false
    data.push(value)
    return true
  }
  if (!Array.isArray(nested) || nested.length !== shape[depth]) return false
  return nested.every((element) => collect(element, shape, depth + 1, data))
}

export function formatArray(value: ArrayValue): string {
  let next = 0
  const print = (depth: number): string => {
    if (depth === value.shape.length) {
      const number = value.data[next++] ?? Number.NaN
      return Number.isFinite(number) ? formatDouble(number) : 'null'
    }
    const elements = Array.from({ length: value.shape[depth] ?? 0 }, () => print(depth + 1))
    return `[${elements.join(',')}]`
  }
  return print(0)
}
