// The type of single values in JavaScript, as the SQL binder, the expression interpreter and INSERT use them. Values
// are exact: integers of 64 bits and more are bigint.
//
//   BOOLEAN boolean | BYTE SHORT INT FLOAT DOUBLE number | CHAR STRING VARCHAR SYMBOL string
//   LONG bigint | DATE bigint (ms) | TIMESTAMP bigint (us) | TIMESTAMP_NS bigint (ns) since the epoch
//   UUID LONG256 bigint (unsigned) | IPv4 number (unsigned) | GEOHASH bigint | DECIMAL bigint (unscaled)
//   BINARY Uint8Array | ARRAY ArrayValue | INTERVAL IntervalValue | NULL of any type null

export interface ArrayValue {
  readonly shape: readonly number[]
  /** Row-major. */
  readonly data: Float64Array
}

export interface IntervalValue {
  /** Inclusive bounds in microseconds. */
  readonly lo: bigint
  readonly hi: bigint
}

export type Value = null | boolean | number | bigint | string | Uint8Array | ArrayValue | IntervalValue

/** By column type: what its values are, except NULL. */
export interface ValuesByType {
  readonly BOOLEAN: boolean
  readonly BYTE: number
  readonly SHORT: number
  readonly CHAR: string
  readonly INT: number
  readonly LONG: bigint
  readonly DATE: bigint
  readonly TIMESTAMP: bigint
  readonly TIMESTAMP_NS: bigint
  readonly FLOAT: number
  readonly DOUBLE: number
  readonly STRING: string
  readonly VARCHAR: string
  readonly SYMBOL: string
  readonly LONG256: bigint
  readonly UUID: bigint
  readonly IPv4: number
  readonly GEOHASH: bigint
  readonly BINARY: Uint8Array
  readonly ARRAY: ArrayValue
  readonly DECIMAL: bigint
  readonly INTERVAL: IntervalValue
}

export function isArrayValue(value: Value | undefined): value is ArrayValue {
  return typeof value === 'object' && value !== null && 'shape' in value
}
