// Plans CREATE, ALTER and DROP SEQUENCE. A sequence is an entry of the catalog; relations/counters.ts assigns its
// numbers.

import { SqlError } from '../../base/errors.js'
import type { SequenceSchema, StoredSequence } from '../../storage/schema/schema.js'
import type * as ast from '../ast/ast.js'
import { counterOf, nextText, sequenceMissing } from '../relations/counters.js'
import { entrySchema } from '../relations/view-table.js'
import type { BindContext } from '../scope/bind-context.js'
import { isDescribed } from '../scope/bind-context.js'
import { checkTableName } from './create-table.js'
import type { PlannedStatement } from './planned.js'

/** Maximum by type. */
const largest: Readonly<Record<ast.SequenceType, bigint>> = {
  smallint: 2n ** 15n - 1n,
  integer: 2n ** 31n - 1n,
  bigint: 2n ** 63n - 1n,
}

const cacheMax = 1_000_000

export function planCreateSequence(statement: ast.CreateSequence, context: BindContext): PlannedStatement {
  const { sequence, ifNotExists, options } = statement
  const { name, position } = sequence
  const { catalog, evaluation } = context
  checkTableName(name, position)
  const numbers = numbersOf(options, position)
  if (ifNotExists && isTaken(name, catalog)) return changed([], 'CREATE SEQUENCE')
  checkFree(sequence, context)
  const schema = { ...entrySchema(name, Number(evaluation.nowMicros)), sequence: numbers }
  return changed([{ kind: 'createTable', ifNotExists, schema }], 'CREATE SEQUENCE')
}

function numbersOf(options: ast.SequenceOptions, position: number): SequenceSchema {
  const { type, increment, cache, cycle } = options
  const refuse = (message: string): SqlError => new SqlError(message, position)
  if (increment === 0n) throw refuse('INCREMENT must not be zero')
  if (cache < 1 || cache > cacheMax) throw refuse(`CACHE must be from 1 to ${cacheMax} [cache=${cache}]`)
  const top = largest[type]
  const bottom = -top - 1n
  const up = increment > 0n
  const minimum = options.minimum ?? (up ? 1n : bottom)
  const maximum = options.maximum ?? (up ? top : -1n)
  if (minimum < bottom || maximum > top) throw refuse(`MINVALUE and MAXVALUE must be within ${type}`)
  if (minimum >= maximum) throw refuse(`MINVALUE (${minimum}) must be less than MAXVALUE (${maximum})`)
  const start = options.start ?? (up ? minimum : maximum)
  if (start < minimum) throw refuse(`START value (${start}) cannot be less than MINVALUE (${minimum})`)
  if (start > maximum) throw refuse(`START value (${start}) cannot be greater than MAXVALUE (${maximum})`)
  return {
    ...{ type, cache, cycle, given: null, start: String(start), increment: String(increment) },
    ...{ minimum: String(minimum), maximum: String(maximum) },
  }
}

/** Also accepts the counter of a column. RESTART takes effect at once, as setval() does. */
export function planAlterSequence(statement: ast.AlterSequence, context: BindContext): PlannedStatement {
  const { sequence, ifExists, restart, newName } = statement
  const { catalog } = context
  const found = catalog.sequence?.(sequence.name)
  if (found === undefined && catalog.counters?.last(sequence.name) === undefined) {
    if (ifExists) return changed([], 'ALTER SEQUENCE')
    throw sequenceMissing(sequence.name, sequence.position)
  }
  if (newName !== undefined) return changed(renamed(sequence.name, found, newName, context), 'ALTER SEQUENCE')
  if (restart === undefined) return changed([], 'ALTER SEQUENCE')
  const first = restart ?? BigInt(found?.sequence.start ?? 1)
  if (!isDescribed(context)) catalog.counters?.set(sequence.name, first, false)
  return changed([], 'ALTER SEQUENCE')
}

/** Renames the sequence, and updates the defaults of columns that use it. */
function renamed(
  name: string,
  found: StoredSequence | undefined,
  newName: ast.TableName,
  context: BindContext,
): Change['changes'] {
  checkTableName(newName.name, newName.position)
  checkFree(newName, context)
  const columns = context.catalog.tables().flatMap(({ schema }) =>
    schema.columns
      .filter((column) => !column.dropped && isNumbered(column, name))
      .map(({ id }) => {
        const names = { tableId: schema.id, columnId: id, default: nextText(newName.name) }
        return { kind: 'alterColumn', ...names } as const
      }),
  )
  if (found === undefined) return columns
  return [...columns, { kind: 'renameTable', tableId: found.id, name: newName.name }]
}

export function isTaken(name: string, catalog: BindContext['catalog']): boolean {
  const isEntry = catalog.table(name) !== undefined || catalog.view(name) !== undefined
  return isEntry || catalog.enumeration?.(name) !== undefined || catalog.counters?.last(name) !== undefined
}

function checkFree({ name, position }: ast.TableName, { catalog }: BindContext): void {
  if (isTaken(name, catalog)) throw new SqlError(`table, view or sequence already exists [name=${name}]`, position)
}

export function planDropSequence(statement: ast.DropSequence, { catalog }: BindContext): PlannedStatement {
  const ids = statement.sequences.flatMap(({ name, position }) => {
    const found = catalog.sequence?.(name)
    if (found === undefined && !statement.ifExists) throw sequenceMissing(name, position)
    if (found === undefined) return []
    for (const { schema } of catalog.tables()) {
      const column = schema.columns.find((candidate) => !candidate.dropped && isNumbered(candidate, name))
      if (column !== undefined)
        throw new SqlError(
          `sequence is the default of a column [sequence=${name}, table=${schema.name}, column=${column.name}]`,
          position,
        )
    }
    return [found.id]
  })
  return changed(
    [...new Set(ids)].map((tableId) => ({ kind: 'dropTable', tableId })),
    'DROP SEQUENCE',
  )
}

function isNumbered(column: Parameters<typeof counterOf>[0], name: string): boolean {
  return counterOf(column)?.toLowerCase() === name.toLowerCase()
}

type Change = Extract<PlannedStatement, { kind: 'change' }>

function changed(changes: Change['changes'], tag: string): PlannedStatement {
  return { kind: 'change', changes, tag }
}
