// Texts that become values of other types: UUID, IPv4, GEOHASH, LONG256, DECIMAL, CHAR. Each returns undefined when the
// text is none.

const uuidText = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const long256Text = /^0x[0-9a-f]{1,64}$/i
const numberText = /^([+-]?)([0-9]*)(?:\.([0-9]*))?(?:e([+-]?[0-9]{1,4}))?$/i
const geohashDigits = '0123456789bcdefghjkmnpqrstuvwxyz'

export function parseUuid(text: string): bigint | undefined {
  return uuidText.test(text) ? BigInt(`0x${text.replaceAll('-', '')}`) : undefined
}

export function parseLong256(text: string): bigint | undefined {
  return long256Text.test(text) ? BigInt(text) : undefined
}

export function parseIpv4(text: string): number | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => /^[0-9]{1,3}$/.test(part) && Number(part) < 256)) return undefined
  return parts.reduce((address, part) => ((address << 8) | Number(part)) >>> 0, 0)
}

/** The first `bits` bits of the geohash; undefined when it has fewer. */
export function parseGeohash(text: string, bits: number): bigint | undefined {
  if (text.length * 5 < bits) return undefined
  const characters = Math.ceil(bits / 5)
  let value = 0n
  for (const character of text.slice(0, characters).toLowerCase()) {
    const digit = geohashDigits.indexOf(character)
    if (digit < 0) return undefined
    value = (value << 5n) | BigInt(digit)
  }
  return value >> BigInt(characters * 5 - bits)
}

/** The number as an integer scaled by 10^scale; undefined when it has more digits than DECIMAL(precision, scale). */
export function parseDecimal(text: string, precision: number, scale: number): bigint | undefined {
  const match = numberText.exec(text)
  if (match === null) return undefined
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  if (whole === '' && fraction === '') return undefined
  const shift = scale - fraction.length + Number(exponent)
  if (shift > 200) return BigInt(whole + fraction) === 0n ? 0n : undefined
  const digits = BigInt(whole + fraction)
  const scaled = shift >= 0 ? digits * 10n ** BigInt(shift) : exactQuotient(digits, 10n ** BigInt(-shift))
  if (scaled === undefined || scaled >= 10n ** BigInt(precision)) return undefined
  return sign === '-' ? -scaled : scaled
}

function exactQuotient(value: bigint, divisor: bigint): bigint | undefined {
  return value % divisor === 0n ? value / divisor : undefined
}

/** The UTF-16 unit of a text of one character. */
export function parseChar(text: string): number | undefined {
  return text.length === 1 ? text.charCodeAt(0) : undefined
}
