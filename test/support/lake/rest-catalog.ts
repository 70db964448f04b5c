// A small Iceberg REST catalog in memory for tests. As the protocol requires, it checks the requirements of each
// commit, applies commits one after the other, and assigns its own field ids. Tests can make a request fail, before or
// after its commit was applied.

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import {
  type CatalogField,
  type CatalogMetadata,
  type CatalogSnapshot,
  catalogJson,
  isObject,
  parseCatalogJson,
} from '../../../engine/lake/catalog-metadata.js'

/** What happens to a request: whether it is carried out, and the answer. */
interface CatalogFault {
  readonly applied: boolean
  readonly answer: number | 'reset' | 'hang'
}

type Version3 = 'refused' | 'ignored'

export interface TestCatalog {
  readonly url: string
  readonly client: { readonly id: string; readonly secret: string }
  /** By namespace and name. */
  readonly tables: Map<string, CatalogMetadata>
  /** Commits that were applied. */
  readonly commits: () => number
  /** What becomes of a request for format version 3, by the table's namespace and name; it is supported by default. */
  readonly version3: Map<string, Version3>
  /** Null: no fault. */
  fault: ((method: string, path: string) => CatalogFault | null) | null
  /** No token is valid any more. */
  expireTokens(): void
  close(): Promise<void>
}

class Refusal extends Error {
  readonly status: number
  readonly type: string

  constructor(status: number, type: string, message: string) {
    super(message)
    this.status = status
    this.type = type
  }
}

type Json = Readonly<Record<string, unknown>>

const prefix = 'some|warehouse'

export async function openTestCatalog(): Promise<TestCatalog> {
  const state = new CatalogState()
  const tokens = new Set<string>()
  const client = { id: 'penstock', secret: 's3cret' }
  const server = createServer((request, response) => void answer(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const catalog: TestCatalog = {
    ...{ url: `http://127.0.0.1:${port}/catalog`, client, tables: state.tables, fault: null },
    version3: state.version3,
    commits: () => state.commits,
    expireTokens: () => tokens.clear(),
    close: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { method = '', url = '' } = request
    const path = url.replace('/catalog/v1/', '').replace(/\?.*$/, '')
    const isToken = path === 'oauth/tokens'
    const fault = isToken ? null : (catalog.fault?.(method, path) ?? null)
    let result: CatalogAnswer = { status: 503, body: {} }
    if (fault === null || fault.applied) result = carriedOut(request, path, Buffer.concat(chunks).toString())
    if (fault?.answer === 'hang') return
    if (fault?.answer === 'reset') {
      request.socket.destroy()
      return
    }
    if (fault !== null)
      result = { status: Number(fault.answer), body: errorBody(Number(fault.answer), 'Fault', 'a fault') }
    const text = result.body === null ? '' : catalogJson(result.body)
    response.writeHead(result.status, { 'content-type': 'application/json' }).end(text)
  }

  function carriedOut(request: IncomingMessage, path: string, text: string): CatalogAnswer {
    if (path === 'oauth/tokens') return answered(() => token(new URLSearchParams(text)))
    if (tokens.has((request.headers.authorization ?? '').replace('Bearer ', '')))
      return state.answer(request.method ?? '', path, text)
    return answered(() => {
      throw new Refusal(401, 'NotAuthorizedException', 'no such token')
    })
  }

  function token(form: URLSearchParams): object {
    if (form.get('client_id') !== client.id || form.get('client_secret') !== client.secret)
      throw new Refusal(401, 'invalid_client', 'no such client')
    const text = randomUUID()
    tokens.add(text)
    return { access_token: text, token_type: 'bearer', expires_in: 3600 }
  }

  return catalog
}

export interface CatalogAnswer {
  readonly status: number
  readonly body: unknown
}

function answered(work: () => unknown): CatalogAnswer {
  try {
    return { status: 200, body: work() }
  } catch (error) {
    if (!(error instanceof Refusal)) return { status: 500, body: errorBody(500, 'Error', String(error)) }
    return { status: error.status, body: errorBody(error.status, error.type, error.message) }
  }
}

/** Its namespaces and tables, and the operations on them. */
export class CatalogState {
  readonly tables = new Map<string, CatalogMetadata>()
  readonly namespaces = new Set<string>()
  readonly version3 = new Map<string, Version3>()
  commits = 0

  /** `path`: behind `/v1/`. */
  answer(method: string, path: string, text: string): CatalogAnswer {
    return answered(() => this.handle(method, path, text === '' ? {} : object(parseCatalogJson(text))))
  }

  private handle(method: string, path: string, body: Json): unknown {
    if (path === 'config') return { defaults: {}, overrides: { prefix: encodeURIComponent(prefix) } }
    const [first = '', ...segments] = path.split('/').map((segment) => decodeURIComponent(segment))
    if (first !== prefix) throw new Refusal(404, 'NotFoundException', `no such prefix ${first}`)
    const [kind, namespace = '', , table] = segments
    if (kind === 'tables' && namespace === 'rename') return this.renamed(body)
    if (kind !== 'namespaces') throw new Refusal(404, 'NotFoundException', path)
    if (namespace === '') return this.createNamespace(body)
    if (!this.namespaces.has(namespace)) throw new Refusal(404, 'NoSuchNamespaceException', namespace)
    if (segments.length === 2) return { namespace: namespace.split('\u001f'), properties: {} }
    const key = `${namespace}.${table ?? String(body['name'])}`
    if (table === undefined) return loaded(this.created(key, body))
    const found = this.tables.get(key)
    if (found === undefined) throw new Refusal(404, 'NoSuchTableException', key)
    if (method === 'GET') return loaded(found)
    const updates = list(body['updates']).filter((update) => this.isCarriedOut(key, update))
    const next = committed(found, list(body['requirements']), updates)
    this.tables.set(key, next)
    this.commits++
    return loaded(next)
  }

  createNamespace(body: Json): object {
    const name = Array.isArray(body['namespace']) ? body['namespace'].join('\u001f') : ''
    if (this.namespaces.has(name)) throw new Refusal(409, 'AlreadyExistsException', name)
    this.namespaces.add(name)
    return body
  }

  created(key: string, body: Json): CatalogMetadata {
    if (this.tables.has(key)) throw new Refusal(409, 'AlreadyExistsException', key)
    const isRaised = object(body['properties'])['format-version'] === '3' && this.hasVersion3(key)
    const metadata = newTable(body, isRaised ? 3 : 2)
    this.tables.set(key, metadata)
    return metadata
  }

  isCarriedOut(key: string, update: Json): boolean {
    return update['action'] !== 'upgrade-format-version' || this.hasVersion3(key)
  }

  hasVersion3(key: string): boolean {
    const version3 = this.version3.get(key)
    if (version3 === 'refused') throw new Refusal(400, 'IllegalArgumentException', 'Unsupported format version: v3')
    return version3 !== 'ignored'
  }

  renamed(body: Json): null {
    const [from, to] = ['source', 'destination'].map((end) => {
      const identifier = object(body[end])
      return `${Array.isArray(identifier['namespace']) ? identifier['namespace'].join('\u001f') : ''}.${String(identifier['name'])}`
    })
    const found = this.tables.get(from ?? '')
    if (found === undefined) throw new Refusal(404, 'NoSuchTableException', from ?? '')
    if (this.tables.has(to ?? '')) throw new Refusal(409, 'AlreadyExistsException', to ?? '')
    this.tables.delete(from ?? '')
    this.tables.set(to ?? '', found)
    return null
  }
}

function loaded(metadata: CatalogMetadata): object {
  return { 'metadata-location': `memory:${metadata['table-uuid']}`, metadata, config: {} }
}

/** Fields get ids from 1 on, those of lists after all columns. */
export function newTable(body: Json, version = 2): CatalogMetadata {
  const schema = object(body['schema'])
  const fields = list(schema['fields'])
  let last = fields.length
  const ids = new Map(fields.map((field, index) => [field['id'], index + 1]))
  const typed = (type: unknown): unknown =>
    isObject(type) && type['type'] === 'list'
      ? { ...type, 'element-id': ++last, element: typed(type['element']) }
      : type
  const renumbered = fields.map((field, index) => ({ ...field, id: index + 1, type: typed(field['type']) }))
  const sourced = (all: Json[]): Json[] => all.map((field) => ({ ...field, 'source-id': ids.get(field['source-id']) }))
  const order = object(body['write-order'])
  const metadata: unknown = {
    ...{
      'format-version': version,
      ...(version === 3 ? { 'next-row-id': 0 } : {}),
      'table-uuid': randomUUID(),
      location: 's3://elsewhere/table',
    },
    ...{ 'last-sequence-number': 0, 'last-updated-ms': Date.now(), 'last-column-id': last, 'current-schema-id': 0 },
    schemas: [{ type: 'struct', 'schema-id': 0, fields: renumbered }],
    'default-spec-id': 0,
    'partition-specs': [{ 'spec-id': 0, fields: sourced(list(object(body['partition-spec'])['fields'])) }],
    'default-sort-order-id': order['order-id'],
    'sort-orders': [{ ...order, fields: sourced(list(order['fields'])) }],
    ...{ properties: body['properties'], 'current-snapshot-id': '-1', snapshots: [], refs: {} },
  }
  return metadata as CatalogMetadata
}

/** The metadata after a commit. Throws Refusal. */
export function committed(
  before: CatalogMetadata,
  requirements: readonly Json[],
  updates: readonly Json[],
): CatalogMetadata {
  for (const requirement of requirements) require(before, requirement)
  return updates.reduce(updated, before)
}

function require(metadata: CatalogMetadata, requirement: Json): void {
  const [actual, expected] = requiredBy(metadata, requirement)
  if (actual === expected) return
  const message = `Requirement failed: ${String(requirement['type'])} ${String(expected)}, found ${String(actual)}`
  throw new Refusal(409, 'CommitFailedException', message)
}

function requiredBy(metadata: CatalogMetadata, requirement: Json): [unknown, unknown] {
  switch (requirement['type']) {
    case 'assert-table-uuid':
      return [metadata['table-uuid'], requirement['uuid']]
    case 'assert-ref-snapshot-id':
      return [metadata.refs?.[String(requirement['ref'])]?.['snapshot-id'] ?? null, requirement['snapshot-id']]
    case 'assert-current-schema-id':
      return [metadata['current-schema-id'], requirement['current-schema-id']]
    case 'assert-last-assigned-field-id':
      return [metadata['last-column-id'], requirement['last-assigned-field-id']]
    default:
      throw new Refusal(400, 'BadRequestException', `no such requirement ${String(requirement['type'])}`)
  }
}

function updated(metadata: CatalogMetadata, update: Json): CatalogMetadata {
  switch (update['action']) {
    case 'add-schema':
      return withSchema(metadata, object(update['schema']), Number(update['last-column-id']))
    case 'set-current-schema': {
      const id = update['schema-id'] === -1 ? metadata.schemas.at(-1)?.['schema-id'] : Number(update['schema-id'])
      return { ...metadata, 'current-schema-id': id ?? 0 }
    }
    case 'upgrade-format-version':
      if (Number(update['format-version']) <= metadata['format-version']) return metadata
      return { ...metadata, 'format-version': 3, 'next-row-id': 0 }
    case 'add-snapshot':
      return withNewSnapshot(metadata, object(update['snapshot']))
    case 'set-snapshot-ref': {
      const ref = { 'snapshot-id': String(update['snapshot-id']), type: String(update['type']) }
      return { ...metadata, refs: { ...metadata.refs, main: ref }, 'current-snapshot-id': ref['snapshot-id'] }
    }
    case 'set-properties':
      return {
        ...metadata,
        properties: { ...metadata.properties, ...(object(update['updates']) as Record<string, string>) },
      }
    case 'remove-snapshots': {
      const [gone] = update['snapshot-ids'] as unknown[]
      const snapshots = metadata.snapshots?.filter((snapshot) => snapshot['snapshot-id'] !== String(gone)) ?? []
      return { ...metadata, snapshots }
    }
    default:
      throw new Refusal(400, 'BadRequestException', `no such update ${String(update['action'])}`)
  }
}

function withSchema(metadata: CatalogMetadata, schema: Json, lastColumnId: number): CatalogMetadata {
  const fields = schema['fields'] as CatalogField[]
  const ids = fields.map(({ id }) => id)
  const isUnique = new Set(ids).size === ids.length && new Set(fields.map(({ name }) => name)).size === ids.length
  if (!isUnique || Math.max(...ids) > lastColumnId || lastColumnId < metadata['last-column-id'])
    throw new Refusal(400, 'BadRequestException', `bad fields ${JSON.stringify(fields)}`)
  const added = { ...metadata.schemas[0], type: 'struct' as const, 'schema-id': metadata.schemas.length, fields }
  return { ...metadata, schemas: [...metadata.schemas, added], 'last-column-id': lastColumnId }
}

function withNewSnapshot(metadata: CatalogMetadata, json: Json): CatalogMetadata {
  const snapshot = json as unknown as CatalogSnapshot
  const number = snapshot['sequence-number']
  if (number <= metadata['last-sequence-number'])
    throw new Refusal(400, 'ValidationException', `sequence number ${number} is not new`)
  return {
    ...metadata,
    ...nextRowId(metadata, snapshot),
    ...{ 'last-sequence-number': number, 'last-updated-ms': Date.now() },
    snapshots: [...(metadata.snapshots ?? []), snapshot],
  }
}

/** In format version 3. */
function nextRowId(
  { 'format-version': version, 'next-row-id': next = 0 }: CatalogMetadata,
  { 'first-row-id': first, 'added-rows': rows }: CatalogSnapshot,
): Partial<CatalogMetadata> {
  if (version < 3) return {}
  if (first === undefined || rows === undefined || first < next)
    throw new Refusal(400, 'ValidationException', `first-row-id ${first} is behind next-row-id ${next}`)
  return { 'next-row-id': next + rows }
}

function object(value: unknown): Json {
  if (isObject(value)) return value
  throw new Refusal(400, 'BadRequestException', 'expected an object')
}

function list(value: unknown): Json[] {
  return Array.isArray(value) ? value.map(object) : []
}

export function errorBody(code: number, type: string, message: string): object {
  return { error: { code, type, message } }
}
