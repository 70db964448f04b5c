// Checks PARQUET(..) of a column against the column's type.

import { SqlError } from '../../base/errors.js'
import {
  type ColumnCodec,
  type ColumnEncoding,
  type ColumnStorage,
  columnCodecs,
  columnEncodings,
} from '../../storage/schema/schema.js'
import { type ColumnType, type DataType, typeText } from '../../types/column-types.js'
import type * as ast from '../ast/ast.js'

/** Types that have each encoding; PLAIN and dictionaries have all types but the ones listed. */
const encoded: Readonly<Record<'delta_length_byte_array' | 'delta_binary_packed', readonly ColumnType[]>> = {
  delta_length_byte_array: ['STRING', 'VARCHAR', 'BINARY'],
  delta_binary_packed: ['INT', 'LONG', 'DATE', 'TIMESTAMP', 'TIMESTAMP_NS'],
}
/** Symbols are always stored with a dictionary, by which filters and groups find them. */
const notPlain: readonly ColumnType[] = ['SYMBOL']
const withoutDictionary: readonly ColumnType[] = ['BOOLEAN', 'ARRAY']
const withoutBloomFilter: readonly ColumnType[] = ['BOOLEAN', 'ARRAY']

/** Null: PARQUET(DEFAULT), which says nothing. Throws SqlError. */
export function columnStorage(
  { encoding, codec, bloomFilter }: ast.ColumnStorageClause,
  column: ast.Name,
  type: DataType,
): ColumnStorage | null {
  if (bloomFilter && withoutBloomFilter.includes(type.name))
    throw new SqlError(
      `a column of this type has no bloom filter [column=${column.name}, type=${typeText(type)}]`,
      column.position,
    )
  const storage: ColumnStorage = {
    ...(encoding === null ? {} : { encoding: encodingOf(encoding, column, type) }),
    ...(codec === null ? {} : codecOf(codec)),
    ...(bloomFilter ? { bloomFilter } : {}),
  }
  return Object.keys(storage).length === 0 ? null : storage
}

function encodingOf(written: ast.Name, column: ast.Name, type: DataType): ColumnEncoding {
  const encoding = columnEncodings.find((name) => name === written.name.toLowerCase())
  if (encoding === undefined) {
    const hint = isCodec(written.name.toLowerCase())
      ? `: the codec comes second, as in PARQUET(default, ${written.name})`
      : ''
    throw new SqlError(
      `unknown encoding [encoding=${written.name}, known=default,${columnEncodings.join()}]${hint}`,
      written.position,
    )
  }
  if (!isEncoded(encoding, type.name))
    throw new SqlError(
      `the encoding is not for columns of this type [encoding=${encoding}, column=${column.name}, type=${typeText(type)}]`,
      written.position,
    )
  return encoding
}

function isEncoded(encoding: ColumnEncoding, type: ColumnType): boolean {
  if (encoding === 'plain') return !notPlain.includes(type)
  if (encoding === 'rle_dictionary') return !withoutDictionary.includes(type)
  return encoded[encoding].includes(type)
}

function isCodec(name: string): name is ColumnCodec {
  return Object.hasOwn(columnCodecs, name)
}

function codecOf({ name, level }: NonNullable<ast.ColumnStorageClause['codec']>): Partial<ColumnStorage> {
  const codec = name.name.toLowerCase()
  if (!isCodec(codec))
    throw new SqlError(
      `unknown compression codec [codec=${name.name}, known=${Object.keys(columnCodecs).join()}]`,
      name.position,
    )
  if (level === null) return { codec }
  const levels = columnCodecs[codec]
  if (levels === null) throw new SqlError(`the compression codec has no levels [codec=${codec}]`, level.position)
  const [least, greatest] = levels
  if (level.value < least || level.value > greatest)
    throw new SqlError(
      `compression level out of range [codec=${codec}, level=${level.value}, min=${least}, max=${greatest}]`,
      level.position,
    )
  return { codec, level: level.value }
}
