// Iceberg REST catalog: serves the read-only part of Iceberg's REST protocol below /iceberg/v1, so that other query
// engines find the tables that have LAKE ON. The catalog has one namespace, `qdb`. Engines read the tables' files
// directly from the object store.
//
//   GET   /iceberg/v1/config                            how to use the catalog
//   POST  /iceberg/v1/oauth/tokens                      exchanges user and password, or a token, for a token (OAuth2)
//   GET   /iceberg/v1/namespaces                        qdb
//   GET   /iceberg/v1/namespaces/qdb                    HEAD, too
//   GET   /iceberg/v1/namespaces/qdb/tables
//   GET   /iceberg/v1/namespaces/qdb/tables/<name>      metadata of a table; HEAD, too
//   GET   /iceberg/v1/namespaces/qdb/tables/<name>/credentials    keys of the object store, if it hands some out
//
// Requests of the protocol's writing part get a 406. If the server commits its tables to an external catalog instead,
// this catalog has no namespace, and its errors say where the tables are.

import { requireRight } from '../../engine/base/rights.js'
import { type CatalogTable, StoreError } from '../../engine/engine.js'
import type { Exchange, HttpContext } from './context.js'
import { parseQueryString } from './query-string.js'
import { contentTypes, reply, replyEmpty } from './replies.js'
import { readBody } from './request-body.js'

export const icebergPath = '/iceberg/v1/'
export const icebergTokenPath = '/iceberg/v1/oauth/tokens'

const namespace = 'qdb'
const tokenSeconds = 3600
const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token'
const tokenExchange = 'urn:ietf:params:oauth:grant-type:token-exchange'

const endpoints = [
  'GET /v1/{prefix}/namespaces',
  'GET /v1/{prefix}/namespaces/{namespace}',
  'HEAD /v1/{prefix}/namespaces/{namespace}',
  'GET /v1/{prefix}/namespaces/{namespace}/tables',
  'GET /v1/{prefix}/namespaces/{namespace}/tables/{table}',
  'HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}',
  'GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials',
]

/** An error in the form of the protocol. */
class CatalogError extends Error {
  readonly status: number
  readonly type: string

  constructor(status: number, type: string, message: string) {
    super(message)
    this.name = 'CatalogError'
    this.status = status
    this.type = type
  }
}

export async function handleIceberg(context: HttpContext, path: string, exchange: Exchange): Promise<void> {
  const { request, response, session } = exchange
  try {
    if (path === icebergTokenPath) return await handleToken(context, exchange)
    requireRight(session, 'read')
    const answer = await answerTo(context, path, exchange)
    if (request.method === 'HEAD') replyEmpty(response, 204)
    else replyCatalog(response, 200, answer)
  } catch (error) {
    if (error instanceof StoreError) {
      // What the service says is for the log, not for all readers.
      const detail = error.cause instanceof Error ? `: ${error.cause.message}` : ''
      context.log('W', 'iceberg', `${error.message}${detail} [path=${path}]`)
      const message = `the object store cannot be read: ${error.message}`
      return replyError(response, new CatalogError(503, 'ServiceUnavailableException', message))
    }
    if (!(error instanceof CatalogError)) throw error
    replyError(response, error)
  }
}

/** The 401 that clients of the protocol expect. */
export function icebergStranger(message: string): object {
  return errorBody(new CatalogError(401, 'NotAuthorizedException', message))
}

function answerTo(context: HttpContext, path: string, { request, query }: Exchange): object | Promise<object> {
  const { method = '' } = request
  const [kind, name, tables, table, part, ...rest] = path.slice(icebergPath.length).split('/').map(decodedSegment)
  const isRead = method === 'GET' || method === 'HEAD'
  if (kind === 'config' && name === undefined && method === 'GET') return { defaults: {}, overrides: {}, endpoints }
  const isKnown = (tables ?? 'tables') === 'tables' && (part ?? 'credentials') === 'credentials' && rest.length === 0
  if (kind !== 'namespaces' || !isRead || !isKnown) {
    const message = `the catalog is read-only and does not have this operation [method=${method}, path=${path}]`
    throw new CatalogError(406, 'UnsupportedOperationException', message)
  }
  const { parameters } = parseQueryString(query)
  const { external } = context.engine.lake
  if (external !== null) {
    if (name === undefined) return { namespaces: [] }
    const message = `the tables of this server are in another catalog [uri=${external}]`
    throw new CatalogError(404, 'NoSuchNamespaceException', message)
  }
  if (name === undefined) return { namespaces: namespacesIn(parameters.get('parent') ?? '') }
  // Clients that find no table t in the namespace qdb.m look for t of the table m in qdb: its snapshots, its files.
  if (table !== undefined && name !== namespace) throw tableMissing(name.replaceAll('\x1f', '.'), table)
  requireNamespace(name)
  if (tables === undefined) return { namespace: [namespace], properties: {} }
  if (table === undefined) {
    const identifiers = context.engine.lake.tables().map((own) => ({ namespace: [namespace], name: own }))
    return { identifiers, 'next-page-token': null }
  }
  if (part !== undefined) return loadCredentials(context, table)
  // The answer has no body, and keys cost a request to their service.
  if (method === 'HEAD') return tableNamed(context, table)
  return loadTable(context, table, parameters.get('snapshots') ?? 'all')
}

async function loadTable(context: HttpContext, name: string, snapshots: string): Promise<object> {
  const { lakeConfig, lakeKeys } = context
  const found = await tableNamed(context, name)
  const metadata = snapshots === 'refs' ? withReferredSnapshots(found) : found.metadata
  const refresh = `v1/namespaces/${namespace}/tables/${encodeURIComponent(name)}/credentials`
  const config = {
    ...lakeConfig,
    ...(await lakeKeys.of(locationOf(found))),
    ...(lakeKeys.expire ? { 'client.refresh-credentials-endpoint': refresh } : {}),
  }
  return { 'metadata-location': found.metadataLocation, metadata, config }
}

async function loadCredentials(context: HttpContext, name: string): Promise<object> {
  const prefix = locationOf(await tableNamed(context, name))
  const config = await context.lakeKeys.of(prefix)
  return { 'storage-credentials': Object.keys(config).length === 0 ? [] : [{ prefix, config }] }
}

async function tableNamed({ engine }: HttpContext, name: string): Promise<CatalogTable> {
  const found = engine.lake.tables().includes(name) ? await engine.lake.table(name) : null
  if (found !== null) return found
  throw tableMissing(namespace, name)
}

function tableMissing(parent: string, name: string): CatalogError {
  return new CatalogError(404, 'NoSuchTableException', `table does not exist in the lake [table=${parent}.${name}]`)
}

/** The folder of the table. */
function locationOf({ metadataLocation }: CatalogTable): string {
  return metadataLocation.replace(/\/metadata\/[^/]*$/, '')
}

/** The metadata with the current snapshot alone, which saves bytes. */
function withReferredSnapshots({ metadata }: CatalogTable): object {
  if (!('snapshots' in metadata) || !Array.isArray(metadata.snapshots)) return metadata
  return { ...metadata, snapshots: metadata.snapshots.slice(-1) }
}

function namespacesIn(parent: string): string[][] {
  if (parent === '') return [[namespace]]
  requireNamespace(parent)
  return []
}

function requireNamespace(name: string): void {
  if (name === namespace) return
  throw new CatalogError(404, 'NoSuchNamespaceException', `namespace does not exist [namespace=${name}]`)
}

function decodedSegment(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw new CatalogError(400, 'BadRequestException', `the path is not encoded correctly [segment=${segment}]`)
  }
}

function replyCatalog(response: Exchange['response'], status: number, body: object): void {
  reply(response, status, contentTypes.plainJson, JSON.stringify(body))
}

function replyError(response: Exchange['response'], error: CatalogError): void {
  replyCatalog(response, error.status, errorBody(error))
}

function errorBody({ message, type, status }: CatalogError): object {
  return { error: { message, type, code: status } }
}

// Tokens ------------------------------------------------------------------------------------------------------------

/** Errors of this path have the form of OAuth2. */
async function handleToken({ auth }: HttpContext, { request, response }: Exchange): Promise<void> {
  if (request.method !== 'POST') {
    throw new CatalogError(406, 'UnsupportedOperationException', 'tokens are requested with POST')
  }
  const form = new URLSearchParams(await readBody(request))
  const grant = form.get('grant_type')
  const refused = (status: number, error: string, description: string): void =>
    replyCatalog(response, status, { error, error_description: description })
  if (grant !== 'client_credentials' && grant !== tokenExchange) {
    return refused(400, 'unsupported_grant_type', 'expected the grant type client_credentials')
  }
  const header = grant === tokenExchange ? `Bearer ${form.get('subject_token') ?? ''}` : credentialsOf(form)
  const principal = await auth.header(header ?? request.headers.authorization)
  if (principal === null) return refused(401, 'invalid_client', 'user or password is wrong')
  replyCatalog(response, 200, {
    access_token: auth.issue(principal, tokenSeconds * 1000),
    token_type: 'bearer',
    issued_token_type: accessTokenType,
    expires_in: tokenSeconds,
  })
}

/** User and password of the form as an Authorization header; undefined: they are in the request's own. */
function credentialsOf(form: URLSearchParams): string | undefined {
  const [user, password] = [form.get('client_id'), form.get('client_secret')]
  if (user === null && password === null) return undefined
  return `Basic ${Buffer.from(`${user ?? ''}:${password ?? ''}`).toString('base64')}`
}
