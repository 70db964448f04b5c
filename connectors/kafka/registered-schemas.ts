// Cache of the schemas to which Kafka records refer in the wire format of schema registries:
//
//   0x00 | schema id u32, big-endian | the value in the format of its schema
//
// Each schema is fetched and compiled once. If it cannot be used, all records that refer to it are rejected.

import { BadRecordError } from './bad-record.js'
import type { SchemaRegistry, SchemaText, SchemaType } from './schema-registry.js'

export const headerBytes = 5

/** Reads values whose schemas are in the registry. */
export interface RegistryReader {
  /** Fetches the schemas that the values refer to and that are not cached. Rejects with RegistryError. */
  prepare(values: Iterable<Uint8Array | null>): Promise<void>
  /** Reads one value whose schema is prepared; parameters as in JsonReader.read. Throws BadRecordError. */
  read(bytes: Uint8Array, prefix: string, fallback: string): void
}

export interface SchemaFormat<Compiled> {
  readonly type: SchemaType
  /** Name of the format in errors. */
  readonly name: string
  /** Each schema comes after the ones that it references; the requested one is the last. May throw any error. */
  compile(schemas: readonly SchemaText[]): Compiled
}

export class RegisteredSchemas<Compiled> {
  readonly #registry: SchemaRegistry
  readonly #format: SchemaFormat<Compiled>
  /** By schema id; for a schema that cannot be used, the error. */
  readonly #compiled = new Map<number, { readonly schema: Compiled } | BadRecordError>()

  constructor(registry: SchemaRegistry, format: SchemaFormat<Compiled>) {
    this.#registry = registry
    this.#format = format
  }

  /** As RegistryReader.prepare. */
  async prepare(values: Iterable<Uint8Array | null>): Promise<void> {
    const missing = new Set<number>()
    for (const value of values) {
      if (value === null || value.length < headerBytes || value[0] !== 0) continue
      const id = schemaId(value)
      if (!this.#compiled.has(id)) missing.add(id)
    }
    for (const id of missing) this.#compiled.set(id, await this.#load(id))
  }

  /** The schema that the value names. Throws BadRecordError. */
  of(value: Uint8Array): Compiled {
    const { name } = this.#format
    if (value.length < headerBytes || value[0] !== 0)
      throw new BadRecordError(`invalid ${name}: the magic byte is missing`)
    const compiled = this.#compiled.get(schemaId(value))
    if (compiled === undefined) throw new BadRecordError(`invalid ${name}: the schema is unknown`)
    if (compiled instanceof BadRecordError) throw compiled
    return compiled.schema
  }

  async #load(id: number): Promise<{ readonly schema: Compiled } | BadRecordError> {
    try {
      return { schema: this.#compile(await this.#registry.schema(id, this.#format.type)) }
    } catch (error) {
      if (error instanceof BadRecordError) return error
      throw error
    }
  }

  #compile(schemas: readonly SchemaText[]): Compiled {
    try {
      return this.#format.compile(schemas)
    } catch (error) {
      throw new BadRecordError(`the schema cannot be used: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
}

function schemaId(value: Uint8Array): number {
  return new DataView(value.buffer, value.byteOffset).getUint32(1)
}
