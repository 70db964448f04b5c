// Client of a schema registry over HTTP, by Confluent's API, which other registries support as well: fetches schemas by
// id.
//
//   GET <url>/schemas/ids/<id>                            the schema and its references
//   GET <url>/subjects/<subject>/versions/<version>       a referenced schema
//
// Nothing is cached here; registered-schemas.ts keeps the schemas. While the registry does not respond, the connector
// retries. If the registry has no schema with an id, records with that id are rejected.

import { request } from 'undici'
import { BadRecordError } from './bad-record.js'
import type { RegistryOptions } from './options.js'

const timeoutMs = 10_000
const referencesMax = 100
const typeNames = { AVRO: 'an Avro schema', JSON: 'a JSON Schema', PROTOBUF: 'a Protobuf schema' } as const

/** The registry is not available now; the same batch is retried later. */
export class RegistryError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'RegistryError'
  }
}

/** As the registry names them. */
export type SchemaType = 'AVRO' | 'JSON' | 'PROTOBUF'

export interface SchemaText {
  /** What other schemas call it: a name of Avro, the path of an import, the URL in `$ref`; empty: the requested one. */
  readonly name: string
  readonly text: string
}

export interface SchemaRegistry {
  /**
   * Returns the schema after the ones that it references. Rejects with RegistryError, or with BadRecordError when there
   * is no such schema of that type.
   */
  schema(id: number, type: SchemaType): Promise<readonly SchemaText[]>
}

interface RegistryResponse {
  readonly schema: string
  readonly schemaType?: string
  readonly references?: readonly { readonly name: string; readonly subject: string; readonly version: number }[]
}

export function schemaRegistry({ url, credentials }: RegistryOptions): SchemaRegistry {
  const base = url.replace(/\/+$/, '')
  const headers: Record<string, string> = { accept: 'application/vnd.schemaregistry.v1+json, application/json' }
  if (credentials !== '') headers['authorization'] = `Basic ${Buffer.from(credentials).toString('base64')}`
  const ask = (path: string): Promise<RegistryResponse> => requestSchema(base + path, headers)
  return {
    schema: async (id, type) => {
      const gathering: Gathering = { ask, type, schemas: [], seen: new Set() }
      await gather(gathering, '', await ask(`/schemas/ids/${id}`))
      return gathering.schemas
    },
  }
}

interface Gathering {
  readonly ask: (path: string) => Promise<RegistryResponse>
  readonly type: SchemaType
  readonly schemas: SchemaText[]
  readonly seen: Set<string>
}

async function gather(gathering: Gathering, name: string, registered: RegistryResponse): Promise<void> {
  const { ask, type, schemas, seen } = gathering
  const { schemaType = 'AVRO' } = registered
  if (schemaType !== type) throw new BadRecordError(`the schema is not ${typeNames[type]} [type=${schemaType}]`)
  for (const reference of registered.references ?? []) {
    const path = `/subjects/${encodeURIComponent(reference.subject)}/versions/${reference.version}`
    if (seen.has(path)) continue
    if (seen.size >= referencesMax) throw new BadRecordError('the schema has too many references')
    seen.add(path)
    await gather(gathering, reference.name, await ask(path))
  }
  schemas.push({ name, text: registered.schema })
}

async function requestSchema(url: string, headers: Record<string, string>): Promise<RegistryResponse> {
  let status: number
  let text: string
  try {
    const response = await request(url, { headers, headersTimeout: timeoutMs, bodyTimeout: timeoutMs })
    status = response.statusCode
    text = await response.body.text()
  } catch (error) {
    throw new RegistryError(`the schema registry cannot be reached: ${String(error)} [url=${url}]`, { cause: error })
  }
  if (status === 404) throw new BadRecordError(`the schema registry does not have the schema [url=${url}]`)
  if (status !== 200) throw new RegistryError(`the schema registry answered ${status} [url=${url}]`)
  try {
    const registered = JSON.parse(text) as RegistryResponse
    if (typeof registered.schema === 'string') return registered
  } catch (error) {
    throw new RegistryError(`the response of the schema registry is not JSON [url=${url}]`, { cause: error })
  }
  throw new RegistryError(`the response of the schema registry has no schema [url=${url}]`)
}
