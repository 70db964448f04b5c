// Creates the context in which one statement is bound (scope/bind-context.ts), from the session and the catalog.

import type { OwnRows, Session } from '../../api/session.js'
import { SqlError } from '../../base/errors.js'
import { requireRight } from '../../base/rights.js'
import { viewRelation } from '../bind/from.js'
import type { Catalog, Parameter, StoredView } from '../catalog.js'
import { type Dialect, nativeDialect } from '../dialect.js'
import { createRandom } from '../functions/random-generator.js'
import type { BindContext, ViewShape } from '../scope/bind-context.js'
import { draftedCatalog, draftOf } from '../scope/drafted-catalog.js'
import type { DeferredValues } from '../typing/deferred-values.js'
import { withPending } from './pending.js'

export interface BindOptions {
  readonly sql: string
  readonly catalog: Catalog
  /** Values of $1, $2, ... */
  readonly parameters: readonly Parameter[]
  /** Set if the plan will be cached for other parameter values. */
  readonly deferred?: DeferredValues | undefined
  /** Result of now() during the statement, in microseconds. */
  readonly nowMicros: number
  readonly user: string
  /** Implements reload_config(). */
  readonly reload?: () => boolean
  /** Absent: native. */
  readonly dialect?: Dialect
  readonly settings?: Session['settings']
  readonly processId?: number | undefined
  readonly transaction?: OwnRows | undefined
  readonly pending?: Session['pending'] | undefined
  readonly configure?: Session['configure'] | undefined
  readonly signal?: Session['signal'] | undefined
  readonly notify?: Session['notify'] | undefined
  readonly channels?: Session['channels'] | undefined
  readonly exportSnapshot?: Session['exportSnapshot'] | undefined
  readonly named?: Session['named'] | undefined
  readonly numbers?: Session['numbers'] | undefined
  readonly describes?: boolean | undefined
  readonly refreshes?: Session['refreshes'] | undefined
  /** Absent if the caller has checked the rights. */
  readonly rights?: Session['rights'] | undefined
  readonly readOnly?: boolean | undefined
  readonly readOnlyReason?: string | undefined
  readonly rowsNow?: BindContext['rowsNow'] | undefined
  /** The names of an enclosing WITH. */
  readonly commonTables?: readonly BindContext['commonTables'][number][] | undefined
  /** Absent: off. */
  readonly viewRewrite?: BindContext['viewRewrite'] | undefined
  /** Absent: fresh. */
  readonly viewRead?: BindContext['viewRead'] | undefined
}

export function bindContext({
  sql,
  catalog,
  parameters,
  nowMicros,
  user,
  settings,
  reload,
  ...rest
}: BindOptions): BindContext {
  const now = BigInt(nowMicros)
  const pending = rest.pending ?? []
  return {
    sql,
    catalog: draftedCatalog(catalog, draftOf(pending)),
    stored: catalog,
    viewShape: (view) => viewShape(view, { catalog, dialect: nativeDialect, nowMicros, user, pending }),
    parameters: rest.deferred?.parameters ?? parameters,
    deferred: rest.deferred ?? null,
    evaluation: {
      ...{ nowMicros: now, clockMicros: () => now, random: createRandom(now, 0x5eedn), user, settings },
      ...(reload === undefined || rest.describes ? {} : { reload }),
    },
    dialect: rest.dialect ?? nativeDialect,
    processId: rest.processId ?? 0,
    session: settings,
    configure: rest.configure ?? null,
    signal: rest.signal ?? null,
    notify: rest.notify ?? null,
    channels: rest.channels ?? (() => []),
    exportSnapshot: rest.exportSnapshot ?? null,
    named: rest.named ?? null,
    numbers: rest.numbers ?? null,
    describes: rest.describes ?? false,
    requireWrite: () => requireWrite(user, rest),
    own: rest.transaction === undefined || rest.transaction.rows === 0 ? null : rest.transaction,
    pending,
    asChanged: withPending,
    readsStored: false,
    viewRewrite: rest.viewRewrite ?? 'off',
    viewRead: rest.viewRead ?? 'fresh',
    refreshes: rest.refreshes ?? null,
    returned: null,
    rowsNow: rest.rowsNow ?? null,
    tables: [],
    wideScopes: new Map(),
    subqueries: [],
    commonTables: [...(rest.commonTables ?? [])],
    declared: new Map(),
    timedQuery: null,
    depth: 0,
    work: { sources: 0, recursions: 0, sleepMs: 0, foldedCharacters: 0 },
    cacheable: parameters.length === 0 || rest.deferred !== undefined,
  }
}

function requireWrite(
  user: string,
  { rights, readOnly = false, readOnlyReason }: Pick<BindOptions, 'rights' | 'readOnly' | 'readOnlyReason'>,
): void {
  if (rights === undefined) return
  requireRight({ user, rights, readOnly, ...(readOnlyReason === undefined ? {} : { readOnlyReason }) }, 'write')
}

function viewShape(
  { sql }: StoredView,
  options: Pick<BindOptions, 'catalog' | 'dialect' | 'nowMicros' | 'user' | 'pending'>,
): ViewShape {
  try {
    const { plan, timestampIndex } = viewRelation(
      sql,
      bindContext({ sql, parameters: [], describes: true, ...options }),
    )
    return { columns: plan.columns, timestampIndex }
  } catch (thrown) {
    if (thrown instanceof SqlError) return { columns: [], timestampIndex: -1 }
    throw thrown
  }
}
