// Converts between DECIMAL values and the binary format of NUMERIC in the PostgreSQL protocol, which consists of groups
// of four decimal digits.
//
//   NUMERIC => count i16 | weight i16 (of the first group, in groups) | sign u16 | scale u16 | count groups i16
//   sign       0x0000 plus, 0x4000 minus, 0xC000 NaN, 0xD000 and 0xF000 infinite

const groupValue = 10_000n
const groupDigits = 4
const negativeSign = 0x4000

/** An unscaled integer with its scale. */
export function encodeNumeric(unscaled: bigint, scale: number): Buffer {
  const padding = (groupDigits - (scale % groupDigits)) % groupDigits
  let rest = (unscaled < 0n ? -unscaled : unscaled) * 10n ** BigInt(padding)
  const groups: number[] = []
  for (; rest > 0n; rest /= groupValue) groups.push(Number(rest % groupValue))
  const fractionGroups = (scale + padding) / groupDigits
  const weight = groups.length - 1 - fractionGroups
  while (groups.length > 0 && groups[0] === 0) groups.shift()
  groups.reverse()
  const bytes = Buffer.alloc(8 + groups.length * 2)
  bytes.writeInt16BE(groups.length, 0)
  bytes.writeInt16BE(groups.length === 0 ? 0 : weight, 2)
  bytes.writeUInt16BE(unscaled < 0n ? negativeSign : 0, 4)
  bytes.writeUInt16BE(scale, 6)
  groups.forEach((group, index) => void bytes.writeInt16BE(group, 8 + index * 2))
  return bytes
}

/** Decimal text, `NaN`, `Infinity` or `-Infinity`; null when the bytes are invalid. */
export function decodeNumeric(bytes: Buffer): string | null {
  if (bytes.length < 8) return null
  const count = bytes.readInt16BE(0)
  const weight = bytes.readInt16BE(2)
  const sign = bytes.readUInt16BE(4)
  const scale = bytes.readUInt16BE(6)
  if (sign === 0xc000) return 'NaN'
  if (sign === 0xd000) return 'Infinity'
  if (sign === 0xf000) return '-Infinity'
  if (sign !== 0 && sign !== negativeSign) return null
  if (count < 0 || bytes.length !== 8 + count * 2) return null
  let digits = ''
  for (let index = 0; index < count; index++) {
    const group = bytes.readInt16BE(8 + index * 2)
    if (group < 0 || group > 9999) return null
    digits += String(group).padStart(groupDigits, '0')
  }
  const wholeDigits = (weight + 1) * groupDigits
  const padded = wholeDigits <= 0 ? '0'.repeat(-wholeDigits) + digits : digits.padEnd(wholeDigits, '0')
  const whole = wholeDigits <= 0 ? '0' : padded.slice(0, wholeDigits).replace(/^0+(?=\d)/, '')
  const fraction = (wholeDigits <= 0 ? padded : padded.slice(wholeDigits)).padEnd(scale, '0').slice(0, scale)
  return `${sign === negativeSign ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`
}
