// Adapter of @dsnp/parquetjs in the engine: its generated Thrift structures of the Parquet format, which
// thrift-writer.ts serialises, and its decoder. The library is loaded at the first use, because that takes long.
// test/engine/storage/part/parquet-thrift.test.ts checks what we use of it.

import { createRequire } from 'node:module'
import type * as ParquetTypes from '@dsnp/parquetjs/dist/gen-nodejs/parquet_types.js'
import { ThriftWriter } from './thrift-writer.js'

export type { ParquetTypes }

/** A 64-bit integer as the thrift library writes it. */
type Int64 = ParquetTypes.PageLocation['offset']

export interface ParquetThrift {
  readonly types: typeof ParquetTypes
  serialize(object: object): Buffer
  /** Fills an empty structure; returns the number of bytes consumed. */
  decode(object: object, bytes: Buffer): number
  /** Exact below 2^52. */
  int64(value: number): Int64
}

let loaded: ParquetThrift | undefined

export function parquetThrift(): ParquetThrift {
  loaded ??= load()
  return loaded
}

function load(): ParquetThrift {
  const require = createRequire(import.meta.url)
  const types = require('@dsnp/parquetjs/dist/gen-nodejs/parquet_types.js') as typeof ParquetTypes
  const { decodeThrift } = require('@dsnp/parquetjs/dist/lib/util.js') as {
    decodeThrift(object: object, bytes: Buffer): number
  }
  const NodeInt64 = require('node-int64') as new (bytes: Buffer) => Int64 & { setValue(value: number): void }
  const int64 = (value: number): Int64 => {
    const integer = new NodeInt64(Buffer.allocUnsafe(8))
    integer.setValue(value)
    return integer
  }
  return { types, serialize, decode: decodeThrift, int64 }
}

/** The method of the generated structures that serialises them. */
const write = Symbol.for('write')

function serialize(object: object): Buffer {
  const writer = new ThriftWriter()
  const structure = object as { [write](writer: ThriftWriter): void }
  structure[write](writer)
  return writer.done()
}

/** A structure that decode() fills. Its constructor accepts no arguments, although its type requires them. */
export function emptyStructure<T>(structure: new (values: never) => T): T {
  return new (structure as unknown as new () => T)()
}
