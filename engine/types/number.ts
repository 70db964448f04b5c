// Formats and parses numbers. A DOUBLE is printed with as few digits as parse back to the same value, but with at least
// one decimal. Absolute values below 0.001 (except 0) and from 10,000,000 on are printed with an exponent (`1.0E10`),
// as clients of this SQL dialect expect.

export const intMin = -2_147_483_648
export const longMin = -9_223_372_036_854_775_808n
export const longMax = 9_223_372_036_854_775_807n

/** Converts to an INT; NULL when it is out of range. */
export function intOrNull(value: number): number | null {
  // A product may be negative zero.
  return value > intMin && value < -intMin ? value + 0 : null
}

/** Converts to a LONG; NULL when it is out of range. */
export function longOrNull(value: bigint): bigint | null {
  return value > longMin && value <= longMax ? value : null
}

export function formatDouble(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity'
  return javaForm(String(Math.abs(value)), value < 0 || Object.is(value, -0))
}

/** The fewest digits that parse back to the same FLOAT. */
export function formatFloat(value: number): string {
  if (!Number.isFinite(value)) return formatDouble(value)
  return javaForm(shortestFloat(Math.abs(value)), value < 0 || Object.is(value, -0))
}

function shortestFloat(value: number): string {
  for (let digits = 1; digits <= 9; digits++) {
    const text = evenOnTie(value, digits)
    if (Math.fround(Number(text)) === value) return String(Number(text))
  }
  return String(value)
}

/** Like toPrecision, but rounds half to even, as Java does. */
function evenOnTie(value: number, digits: number): string {
  const [mantissa = '', exponent = '0'] = value.toExponential(digits).split('e')
  const tie = mantissa.endsWith('5') && Number(`${mantissa}e${exponent}`) === value
  const even = Number(mantissa.at(-2) === '.' ? mantissa.at(-3) : mantissa.at(-2)) % 2 === 0
  return tie && even ? `${mantissa.slice(0, -1)}e${exponent}` : value.toPrecision(digits)
}

/**
 * Converts JavaScript's form (`1e+21`, `0.00001`, `123.5`) to digits and exponent, and then to the dialect's form.
 */
function javaForm(text: string, negative: boolean): string {
  const [mantissa = '', exponentText] = text.split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const all = whole + fraction
  const leading = /^0*/.exec(all)?.[0].length ?? 0
  const digits = all.slice(leading).replace(/0+$/, '')
  const sign = negative ? '-' : ''
  if (digits === '') return `${sign}0.0`
  const exponent = Number(exponentText ?? '0') + whole.length - leading - 1
  if (exponent >= 7 || exponent < -3) return `${sign}${digits[0]}.${digits.slice(1) || '0'}E${exponent}`
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`
  const padded = digits.padEnd(exponent + 1, '0')
  return `${sign}${padded.slice(0, exponent + 1)}.${padded.slice(exponent + 1) || '0'}`
}

// Parsing follows the casts of this dialect: no blanks around integers, whose digits may be grouped by `_`; a LONG
// has no plus sign but may end with L; a DOUBLE may end with D.

/** A decimal integer within 64 bits, or null. */
export function parseLong(text: string): bigint | null {
  const digits = /^(-?\d+(?:_\d+)*)[lL]?$/.exec(text)?.[1]
  if (digits === undefined) return null
  const value = BigInt(digits.replaceAll('_', ''))
  return value > longMin && value <= longMax ? value : null
}

export function parseInteger(text: string, min: number, max: number): number | null {
  if (!/^[+-]?\d+(?:_\d+)*$/.test(text)) return null
  const value = Number(text.replaceAll('_', ''))
  return value >= min && value <= max ? value : null
}

const doublePattern = /^([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[dD]?$/

/** undefined when a double cannot hold the number; NaN for the words NaN and infinity. */
export function parseDouble(text: string): number | undefined {
  const trimmed = text.trim()
  const digits = doublePattern.exec(trimmed)?.[1]
  if (digits === undefined) return /^[+-]?(?:nan|inf|infinity)$/i.test(trimmed) ? Number.NaN : undefined
  const value = Number(digits)
  const isTooSmall = value === 0 && /[1-9]/.test(digits.replace(/[eE].*/, ''))
  return isTooSmall || !Number.isFinite(value) ? undefined : value
}

/** The nearest FLOAT; undefined when it would become infinite or zero. */
export function nearestFloat(value: number): number | undefined {
  const retained = Math.fround(value)
  const isLost = Number.isFinite(value) && (!Number.isFinite(retained) || (retained === 0 && value !== 0))
  return isLost ? undefined : retained
}

/** Converts decimal text to an integer scaled by 10^scale, rounding half up; null when it exceeds the precision. */
export function parseDecimal(text: string, precision: number, scale: number): bigint | null {
  const match = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?[mMdDfF]?$/.exec(text.trim())
  if (match === null) return null
  const [, sign, whole = '', fraction = '', exponent = '0'] = match
  if (whole === '' && fraction === '') return null
  const shift = Number(exponent) - fraction.length + scale
  if (Math.abs(shift) > 400) return null
  const value = scaleInteger(BigInt(whole + fraction), shift)
  if (value >= 10n ** BigInt(precision)) return null
  return sign === '-' ? -value : value
}

/** value * 10^shift, rounded half away from zero when digits are lost. */
export function scaleInteger(value: bigint, shift: number): bigint {
  if (shift >= 0) return value * 10n ** BigInt(shift)
  const divisor = 10n ** BigInt(-shift)
  const half = divisor / 2n
  return value < 0n ? -((-value + half) / divisor) : (value + half) / divisor
}

/** Quotient rounded to a whole number, halves to the even one. */
export function divideHalfEven(dividend: bigint, divisor: bigint): bigint {
  const [above, below] = divisor < 0n ? [-dividend, -divisor] : [dividend, divisor]
  const quotient = above / below
  const rest = above % below
  const twice = (rest < 0n ? -rest : rest) * 2n
  const isUp = twice > below || (twice === below && quotient % 2n !== 0n)
  return isUp ? quotient + (above < 0n ? -1n : 1n) : quotient
}

export function formatDecimal(value: bigint, scale: number): string {
  const digits = String(value < 0n ? -value : value).padStart(scale + 1, '0')
  const sign = value < 0n ? '-' : ''
  if (scale === 0) return sign + digits
  return `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}
