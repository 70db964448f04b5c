// A simulated external Iceberg REST catalog. Its tables survive the lives of a server. Requests fail before or after
// they were applied, are applied late or twice, get a conflict that is none, or meet the commit of another program.

import { type CatalogMetadata, catalogJson, snapshotOf } from '../../../engine/lake/catalog-metadata.js'
import type { RestCatalogOptions } from '../../../engine/lake/rest-catalog.js'
import type { HttpTransport } from '../../../engine/object-store/http-transport.js'
import { StoreError } from '../../../engine/object-store/object-store.js'
import { CatalogState, committed, errorBody } from '../lake/rest-catalog.js'
import type { StoreFaults } from './simulated-store.js'

export interface SimulatedCatalog {
  /** By namespace and name. */
  readonly tables: ReadonlyMap<string, CatalogMetadata>
  readonly options: RestCatalogOptions
  /** The service cannot be reached until this is false again. */
  isAway: boolean
  /** Commits of another program. */
  readonly foreignCommits: () => number
}

/** Of each fault of a commit, at least, where there are any. */
const commitChance = 0.15
/** That another program has committed before a commit. */
const foreignChance = 0.3

export function simulatedCatalog(faults: Required<StoreFaults>): SimulatedCatalog {
  const state = new CatalogState()
  /** Commits that were given up and are applied later. */
  const late: (() => void)[] = []
  let foreign = 0

  /** Another program adds a snapshot that lists the same manifests. */
  function commitForeign(): void {
    for (const [name, metadata] of state.tables) {
      const snapshot = snapshotOf(metadata)
      if (snapshot === null) continue
      const id = `9${faults.random.below(2 ** 32)}`
      const update = {
        action: 'add-snapshot',
        snapshot: {
          ...{ ...snapshot, 'snapshot-id': id, 'parent-snapshot-id': snapshot['snapshot-id'] },
          ...{ 'sequence-number': metadata['last-sequence-number'] + 1, summary: { operation: 'append' } },
          ...(metadata['format-version'] < 3 ? {} : { 'first-row-id': metadata['next-row-id'], 'added-rows': 0 }),
        },
      }
      const ref = { action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch', 'snapshot-id': id }
      state.tables.set(name, committed(metadata, [], [update, ref]))
      foreign++
    }
  }

  async function send(
    url: URL,
    { method, body }: Parameters<HttpTransport['send']>[1],
  ): ReturnType<HttpTransport['send']> {
    const path = url.pathname.slice('/v1/'.length)
    const isCommit = method === 'POST' && /\/tables\/[^/]+$/.test(path)
    const { random } = faults
    const apply = (): { status: number; body: unknown } =>
      state.answer(method, path, body === null ? '' : new TextDecoder().decode(body))
    await Promise.resolve()
    await faults.pass()
    if (catalog.isAway) throw new StoreError('unavailable', 'the simulated catalog is away')
    // A commit follows several other requests, none of which is repeated.
    const chance = isCommit && faults.chance > 0 ? Math.max(faults.chance, commitChance) : faults.chance / 5
    for (const one of late.splice(0)) one()
    if (random.chance(chance)) throw new StoreError('unavailable', 'the request was lost')
    if (random.chance(chance)) return responseOf({ status: 503, body: errorBody(503, 'Fault', 'a fault') })
    if (isCommit && random.chance(chance)) {
      late.push(apply)
      throw new StoreError('unavailable', 'timed out, and is applied later')
    }
    if (isCommit && random.chance(chance)) return responseOf({ status: 409, body: errorBody(409, 'Fault', 'a fault') })
    if (isCommit && random.chance(foreignChance)) commitForeign()
    const answer = apply()
    await faults.pass()
    if (random.chance(chance)) throw new StoreError('unavailable', 'applied, but the response was lost')
    if (random.chance(chance)) return responseOf({ status: 500, body: errorBody(500, 'Fault', 'applied, and a fault') })
    // A proxy repeats the request: the second one meets the table that the first one has changed.
    return responseOf(random.chance(chance) ? apply() : answer)
  }

  const catalog = {
    tables: state.tables,
    options: {
      ...{ url: 'http://catalog', warehouse: '', namespace: ['qdb'], token: '', client: null, scope: '', tokenUrl: '' },
      ...{ timeoutMs: 1000, transport: { send, close: async () => {} } },
    },
    isAway: false,
    foreignCommits: () => foreign,
  }
  return catalog
}

function responseOf({ status, body }: { status: number; body: unknown }): Awaited<ReturnType<HttpTransport['send']>> {
  const text = body === null ? '' : catalogJson(body)
  return { status, header: () => null, content: new TextEncoder().encode(text) }
}
