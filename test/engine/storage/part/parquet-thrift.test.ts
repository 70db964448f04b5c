// Goal: a new version of the package @dsnp/parquetjs cannot change unnoticed what the engine uses of its internals:
// where its Thrift structures are, the numbers of types, encodings and codecs, and the bytes of the compact encoding.
// Our own writers of structures and page headers must produce the same bytes as the package.

import { createRequire } from 'node:module'
import { expect, test } from 'vitest'
import { encodePageHeader } from '../../../../engine/storage/part/page-header.js'
import { pageCodecs } from '../../../../engine/storage/part/parquet-codec.js'
import { emptyStructure, parquetThrift } from '../../../../engine/storage/part/parquet-thrift.js'
import { encodings, physicalTypes } from '../../../../engine/storage/part/parquet-types.js'

test('numbers of the format', () => {
  const { types } = parquetThrift()
  expect([types.Type.BOOLEAN, types.Type.INT32, types.Type.INT64, types.Type.FLOAT, types.Type.DOUBLE]).toEqual([
    ...[physicalTypes.BOOLEAN, physicalTypes.INT32, physicalTypes.INT64, physicalTypes.FLOAT, physicalTypes.DOUBLE],
  ])
  expect([types.Type.BYTE_ARRAY, types.Type.FIXED_LEN_BYTE_ARRAY]).toEqual([
    physicalTypes.BYTE_ARRAY,
    physicalTypes.FIXED,
  ])
  const { PLAIN, RLE, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, RLE_DICTIONARY, BYTE_STREAM_SPLIT } = types.Encoding
  const { plain, rle, delta, deltaLength, dictionary, byteStreamSplit } = encodings
  expect([PLAIN, RLE, DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, RLE_DICTIONARY, BYTE_STREAM_SPLIT]).toEqual([
    ...[plain, rle, delta, deltaLength, dictionary, byteStreamSplit],
  ])
  const { UNCOMPRESSED, ZSTD, LZ4_RAW } = types.CompressionCodec as unknown as Record<string, number>
  expect([UNCOMPRESSED, ZSTD, LZ4_RAW]).toEqual([pageCodecs.none, pageCodecs.zstd, pageCodecs.lz4_raw])
})

test('the compact encoding, 64-bit integers included', () => {
  const { types, serialize, decode, int64 } = parquetThrift()
  const header = new types.PageHeader({
    type: types.PageType.DATA_PAGE,
    uncompressed_page_size: 300,
    compressed_page_size: 200,
    crc: -2,
    data_page_header: new types.DataPageHeader({
      num_values: 7,
      encoding: types.Encoding.DELTA_BINARY_PACKED,
      definition_level_encoding: types.Encoding.RLE,
      repetition_level_encoding: types.Encoding.RLE,
    }),
  })
  const bytes = serialize(header)
  expect(bytes.toString('hex')).toBe('150015d8041590031503' + '1c150e150a15061506' + '0000')
  const back = emptyStructure(types.PageHeader)
  expect(decode(back, bytes)).toBe(bytes.length)
  expect([back.crc, back.data_page_header?.num_values]).toEqual([-2, 7])
  const location = { offset: int64(2 ** 40 + 1), compressed_page_size: 5, first_row_index: int64(65_536) }
  const index = new types.OffsetIndex({ page_locations: [new types.PageLocation(location)] })
  const read = emptyStructure(types.OffsetIndex)
  decode(read, serialize(index))
  expect(Number(read.page_locations[0]?.offset)).toBe(2 ** 40 + 1)
  expect(Number(read.page_locations[0]?.first_row_index)).toBe(65_536)
})

const { serializeThrift } = createRequire(import.meta.url)('@dsnp/parquetjs/dist/lib/util.js') as {
  serializeThrift(object: object): Buffer
}

test('our own writer of structures makes the bytes of the library', () => {
  const { types, serialize, int64 } = parquetThrift()
  const numbers = [0, 1, -1, 63, 64, 127, 128, 300, 65_536, 2 ** 31 - 1, 2 ** 31, 2 ** 40 + 1, -(2 ** 45), 2 ** 51 + 1]
  const pages = numbers.map(
    (n) => new types.PageLocation({ offset: int64(n), compressed_page_size: n | 0, first_row_index: int64(n + 1) }),
  )
  const children = Array.from({ length: 20 }, (_, index) => {
    return new types.SchemaElement({ name: `c${index} ö`, num_children: index, scale: -index, precision: 2 ** index })
  })
  const logicals = [
    new types.LogicalType({ INTEGER: new types.IntType({ bitWidth: 8, isSigned: true }) }),
    new types.LogicalType({
      TIMESTAMP: new types.TimestampType({
        isAdjustedToUTC: false,
        unit: new types.TimeUnit({ MICROS: new types.MicroSeconds() }),
      }),
    }),
    new types.LogicalType({ UUID: new types.UUIDType() }),
  ]
  const structures = [
    new types.OffsetIndex({ page_locations: pages }),
    ...logicals.map((logicalType) => new types.SchemaElement({ name: 'logical', logicalType })),
    ...[0, 14, 15, 16, 200].map(
      (count) =>
        new types.ColumnIndex({
          null_pages: Array.from({ length: count }, (_, index) => index % 3 === 0),
          min_values: Array.from({ length: count }, (_, index) => Buffer.alloc(index * 11, index)),
          max_values: [],
          boundary_order: 1,
          null_counts: Array.from({ length: count }, (_, index) => int64(index)),
        }),
    ),
    new types.FileMetaData({
      version: 2,
      schema: children,
      num_rows: int64(5_000_000_000),
      row_groups: [],
      key_value_metadata: [new types.KeyValue({ key: 'k', value: 'x'.repeat(3000) })],
      created_by: 'test',
    }),
  ]
  for (const structure of structures)
    expect(serialize(structure).toString('hex')).toBe(serializeThrift(structure).toString('hex'))
})

test('our own writer of page headers makes the bytes of the library', () => {
  const { types } = parquetThrift()
  const numbers = [0, 1, 63, 64, 127, 128, 300, 65_536, 2 ** 20, 2 ** 30, 2 ** 31 - 1]
  for (const [n, rawBytes] of numbers.entries()) {
    const [values, bytes, crc] = [1, 2, 3].map((step) => numbers[(n + step) % numbers.length] as number) as [
      number,
      number,
      number,
    ]
    for (const [kind, signed] of [
      ['data', crc],
      ['dictionary', crc],
      ['data', -1 - crc],
    ] as const) {
      const encoding = types.Encoding.RLE_DICTIONARY
      const sizes = { uncompressed_page_size: rawBytes, compressed_page_size: bytes, crc: signed }
      const levels = { definition_level_encoding: types.Encoding.RLE, repetition_level_encoding: types.Encoding.RLE }
      const header =
        kind === 'data'
          ? {
              type: types.PageType.DATA_PAGE,
              data_page_header: new types.DataPageHeader({ num_values: values, encoding, ...levels }),
            }
          : {
              type: types.PageType.DICTIONARY_PAGE,
              dictionary_page_header: new types.DictionaryPageHeader({ num_values: values, encoding }),
            }
      const own = encodePageHeader({ kind, values, encoding, rawBytes, bytes, crc: signed >>> 0 })
      expect(Buffer.from(own).toString('hex')).toBe(
        serializeThrift(new types.PageHeader({ ...sizes, ...header })).toString('hex'),
      )
    }
    const second = { nulls: crc, rows: bytes, definitionBytes: values, repetitionBytes: n, compressed: n % 2 === 0 }
    const data_page_header_v2 = new types.DataPageHeaderV2({
      ...{
        num_values: values,
        num_nulls: second.nulls,
        num_rows: second.rows,
        encoding: types.Encoding.RLE_DICTIONARY,
      },
      definition_levels_byte_length: second.definitionBytes,
      repetition_levels_byte_length: second.repetitionBytes,
      is_compressed: second.compressed,
    })
    const sizes = { uncompressed_page_size: rawBytes, compressed_page_size: bytes, crc }
    const header = new types.PageHeader({ ...sizes, type: types.PageType.DATA_PAGE_V2, data_page_header_v2 })
    const encoding = types.Encoding.RLE_DICTIONARY
    const own = encodePageHeader({ kind: second, values, encoding, rawBytes, bytes, crc })
    expect(Buffer.from(own).toString('hex')).toBe(serializeThrift(header).toString('hex'))
  }
})
