// Reads Kafka records in JSON with a schema in a schema registry (wire format: registered-schemas.ts) into columns of a
// row. The JSON Schema tells what the text of a value does not: that a `number` is a double even if it is written as 5,
// that an `integer` is not a double, and which values are timestamps or decimals.

import type { ConnectTypes } from './connect-schema.js'
import type { JsonReader } from './json-reader.js'
import { JsonSchema } from './json-schema.js'
import { headerBytes, RegisteredSchemas, type RegistryReader } from './registered-schemas.js'
import type { SchemaRegistry } from './schema-registry.js'

export class JsonSchemaReader implements RegistryReader {
  readonly #schemas: RegisteredSchemas<CompiledSchema>
  readonly #json: JsonReader

  constructor(registry: SchemaRegistry, json: JsonReader) {
    this.#schemas = new RegisteredSchemas(registry, {
      ...{ type: 'JSON', name: 'JSON' },
      compile: (schemas) => ({ schema: new JsonSchema(schemas), types: new Map() }),
    })
    this.#json = json
  }

  prepare(values: Iterable<Uint8Array | null>): Promise<void> {
    return this.#schemas.prepare(values)
  }

  read(bytes: Uint8Array, prefix: string, fallback: string): void {
    const { schema, types } = this.#schemas.of(bytes)
    let known = types.get(prefix)
    if (known === undefined) {
      known = schema.types(prefix, fallback)
      types.set(prefix, known)
    }
    this.#json.readTyped(bytes.subarray(headerBytes), prefix, fallback, known)
  }
}

interface CompiledSchema {
  readonly schema: JsonSchema
  /** By prefix: those of keys and of values. */
  readonly types: Map<string, ConnectTypes>
}
